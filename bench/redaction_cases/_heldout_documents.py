"""Credentials where people and programs report them: logs, answers, tables, tickets and forms."""

from bench.redaction_cases._heldout_fill import entries

LOGS = """
@@ password ci_log log none
⟨time⟩ [build] + docker login --username ⟨user⟩ --password ⟨!pws⟩ ⟨host⟩
⟨time⟩ [build] Login Succeeded
@@ password ci_env log none
⟨time⟩ INFO  resolved environment
⟨time⟩ INFO    DB_HOST=⟨host⟩
⟨time⟩ INFO    DB_PASSWORD=⟨!pw⟩
⟨time⟩ INFO    DB_POOL=12
@@ password debug_log log none
⟨time⟩ DEBUG auth: login attempt user=⟨user⟩ password=⟨!pws⟩ ip=10.2.⟨small⟩.7 result=denied
@@ password logfmt log none
ts=⟨time⟩ level=debug msg="connect" dsn="user=⟨user⟩ password='⟨!pwq⟩' host=⟨host⟩"
@@ password traceback log none
Traceback (most recent call last):
  File "/srv/app/db.py", line ⟨small⟩, in connect
    conn = pymysql.connect(host="⟨host⟩", user="⟨user⟩", password="⟨!pwq⟩")
pymysql.err.OperationalError: (1045, "Access denied for user '⟨user⟩'@'10.0.0.4' (using password: YES)")
@@ password traceback_repr log none
  File "/usr/lib/python3.12/site-packages/app/main.py", line ⟨small⟩, in <module>
ValueError: bad settings: Settings(host='⟨host⟩', user='⟨user⟩', password='⟨!pwq⟩', pool=5)
@@ password traceback_url log none
sqlalchemy.exc.OperationalError: could not connect to postgresql://⟨user⟩:⟨!pws⟩@⟨host⟩/⟨db⟩: timeout expired
@@ password java_log log none
⟨time⟩ ERROR c.a.b.LoginService - Bind failed for LoginRequest[username=⟨user⟩, password=⟨!pws⟩, tenant=⟨num⟩]
@@ password ruby_log log none
Parameters: {"utf8"=>"✓", "user"=>{"login"=>"⟨user⟩", "password"=>"⟨!pwq⟩"}, "commit"=>"Sign in"}
@@ token http_log log none
> GET /v1/accounts HTTP/1.1
> Host: ⟨host⟩
> Authorization: Bearer ⟨!jwt⟩
> Accept: */*
< HTTP/1.1 401 Unauthorized
@@ token http_token log none
> GET /api/dcim/sites/ HTTP/1.1
> Host: ⟨host⟩
> Authorization: Token ⟨!opaque⟩
< HTTP/1.1 403 Forbidden
@@ token access_log log none
10.1.⟨small⟩.9 - - [⟨time⟩] "GET /export?access_token=⟨!opaque⟩&format=csv HTTP/1.1" 200 5316
@@ token cookie log none
Set-Cookie: session_token=⟨!opaque⟩; Path=/; HttpOnly; Secure
@@ vendor_key log log none
⟨time⟩ ERROR openai.AuthenticationError: Error code: 401 - Incorrect API key provided: ⟨!openai⟩.
@@ vendor_key slack_log log none
⟨time⟩ WARN posting with ⟨!slack⟩ failed: channel_not_found
@@ vendor_key gha log none
Run git push https://x-access-token:⟨!github⟩@github.com/acme/⟨db⟩.git HEAD:main
remote: Permission denied
@@ aws log log none
⟨time⟩ DEBUG botocore.credentials Found credentials: access_key=⟨!awsid⟩ secret_key=⟨!awssecret⟩
@@ password expect log none
⟨user⟩@⟨host⟩'s password: ⟨!pws⟩
Last login: Mon Jun  2 08:11:40 from 10.0.0.12
@@ password terraform_plan log none
  + resource "random_password" "db" {
      + length = 20
    }
  ~ password = "⟨!pws⟩" -> "⟨!pws2⟩"
@@ password jsonl log json
{"ts": "⟨time⟩", "level": "debug", "event": "login", "user": "⟨user⟩", "password": "⟨!pwj⟩"}
{"ts": "⟨time2⟩", "level": "info", "event": "logout", "user": "⟨user⟩"}
"""

JSON = """
@@ password field json json
{"username": "⟨user⟩", "password": "⟨!pwj⟩", "remember": true}
@@ password field_ascii json json_ascii
{"host": "⟨host⟩", "port": 5432, "user": "⟨user⟩", "passwd": "⟨!pwj⟩"}
@@ password nested json json
{"database": {"default": {"host": "⟨host⟩", "credentials": {"user": "⟨user⟩", "pass": "⟨!pwj⟩"}}}}
@@ password key_val json json
{"environment": [{"key": "LOG_LEVEL", "val": "debug"}, {"key": "DB_PASSWORD", "val": "⟨!pwj⟩"}]}
@@ password name_value json json
{"containerDefinitions": [{"name": "web", "environment": [{"name": "SMTP_PASSWORD", "value": "⟨!pwj⟩"}, {"name": "TZ", "value": "UTC"}]}]}
@@ password value_name json json
{"variables": [{"value": "⟨!pwj⟩", "key": "ADMIN_PASSWORD", "protected": false}]}
@@ password argument_list json json
{"cmd": ["pg_restore", "--host", "⟨host⟩", "--password", "⟨!pwj⟩", "dump.tar"]}
@@ password tool_call json json_twice
{"role": "assistant", "tool_calls": [{"function": {"name": "login", "arguments": "{\\"user\\": \\"⟨user⟩\\", \\"password\\": \\"⟨!pwq⟩\\"}"}}]}
@@ password chat json json
{"messages": [{"role": "user", "content": "my password is ⟨!pws⟩, please log in to ⟨host⟩"}]}
@@ password camel json json
{"smtpUser": "⟨user⟩", "smtpPassword": "⟨!pwj⟩", "smtpPort": 465}
@@ password german_field json json de
{"benutzer": "⟨user⟩", "kennwort": "⟨!pwj⟩"}
@@ password spanish_field json json es
{"usuario": "⟨user⟩", "contraseña": "⟨!pwj⟩"}
@@ password columns json json
{"columns": ["id", "login", "password"], "rows": [[⟨num⟩, "⟨user⟩", "⟨!pwj⟩"], [⟨num2⟩, "⟨user2⟩", "⟨!pwj2⟩"]]}
@@ token oauth json json
{"access_token": "⟨!opaque⟩", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "⟨!opaque2⟩"}
@@ token jwt json json
{"id_token": "⟨!jwt⟩", "expires_in": 300}
@@ secret client json json
{"appId": "⟨uuid⟩", "displayName": "⟨db⟩-ci", "clientSecret": "⟨!azure⟩", "tenant": "⟨uuid2⟩"}
@@ secret azure_cli json json
{"appId": "⟨uuid⟩", "password": "⟨!azure⟩", "tenant": "⟨uuid2⟩"}
@@ private_key service_account json json
{"type": "service_account", "project_id": "⟨db⟩", "private_key_id": "⟨addr⟩", "private_key": "⟨!pem⟩\\n"}
@@ aws sts json json
{"Credentials": {"AccessKeyId": "⟨!awsid⟩", "SecretAccessKey": "⟨!awssecret⟩", "SessionToken": "⟨!opaque⟩"}}
@@ vendor_key slack_export json json
{"type": "message", "user": "U0⟨num⟩", "text": "try this one: ⟨!slack⟩", "ts": "1718112345.000200"}
@@ password slack_export json json
[{"type": "message", "user": "U0⟨num⟩", "text": "what's the ⟨sys⟩ login?", "ts": "1718112345.000200"}, {"type": "message", "user": "U0⟨num2⟩", "text": "user ⟨user⟩ password: ⟨!pws⟩", "ts": "1718112399.000300"}]
@@ wallet keystore json json
{"address": "0x⟨addr⟩", "privateKey": "0x⟨!hexkey⟩"}
"""

TABLES = """
@@ password csv csv none
id,login,password,created
⟨num⟩,⟨user⟩,⟨!pws⟩,2024-03-02
⟨num2⟩,⟨user2⟩,⟨!pws2⟩,2024-04-11
@@ password csv_quoted csv none
"name","url","username","password"
"⟨sys⟩","https://⟨host⟩/","⟨user⟩","⟨!pwq⟩"
@@ password csv_semicolon csv none de
Benutzer;Kennwort;Abteilung
⟨user⟩;⟨!pws⟩;Vertrieb
⟨user2⟩;⟨!pws2⟩;Einkauf
@@ password tsv csv none
host	user	password
⟨host⟩	⟨user⟩	⟨!pws⟩
@@ token csv csv none
service,api_key,owner
⟨sys⟩,⟨!opaque⟩,⟨user⟩
@@ password table_row markdown none
| System | Login | Password |
|--------|-------|----------|
| ⟨sys⟩ | ⟨user⟩ | ⟨!pws⟩ |
| ⟨sys2⟩ | ⟨user2⟩ | ⟨!pwq⟩ |
@@ password table_pair markdown none
| Field | Value |
|---|---|
| Host | ⟨host⟩ |
| User | ⟨user⟩ |
| Password | ⟨!pwq⟩ |
@@ password table_ticks markdown none
| env | user | password |
| --- | --- | --- |
| staging | `⟨user⟩` | `⟨!pwq⟩` |
@@ password psql_table log none
 id |  login   |   password
----+----------+--------------
 ⟨small⟩ | ⟨user⟩ | ⟨!pws⟩
(1 row)
@@ password mysql_table log none
+----+----------+------------------+
| id | user     | password         |
+----+----------+------------------+
| ⟨small⟩ | ⟨user⟩ | ⟨!pws⟩ |
+----+----------+------------------+
@@ password readme markdown none
## Local setup

1. Start the database: `docker compose up -d db`
2. Log in with user `⟨user⟩` and password `⟨!pwq⟩`
3. Open http://localhost:8080
@@ password readme_list markdown none
### Demo access

- **URL:** https://⟨host⟩
- **User:** ⟨user⟩
- **Password:** ⟨!pwl⟩
@@ password readme_fence markdown none
Put this into `config.toml`:

```toml
[smtp]
user = "⟨user⟩"
password = "⟨!pwq⟩"
```
@@ password ticket markdown none
**Steps to reproduce**
1. Go to https://⟨host⟩/login
2. Username ⟨user⟩, password ⟨!pws⟩
3. Click "Sign in"

**Actual:** error 500 (ticket ⟨num⟩)
@@ vendor_key readme markdown none
> Note: the key `⟨!anykey⟩` is for the test tenant only.
@@ password form html html
<form action="/login" method="post">
  <input type="text" name="user" value="⟨user⟩">
  <input type="password" name="password" value="⟨!pwq⟩">
</form>
@@ password form_reversed html html
<input value="⟨!pwq⟩" id="passwd" type="password" class="form-control">
@@ token hidden html html
<input type="hidden" name="csrf_token" value="⟨!opaque⟩">
<input type="hidden" name="page" value="3">
@@ password cell html html
<table><tr><th>User</th><th>Password</th></tr>
<tr><td>⟨user⟩</td><td>⟨!pwq⟩</td></tr></table>
@@ password row html html
<tr><td>Password</td><td>⟨!pwq⟩</td></tr>
@@ password mail html html
<p>Hello,</p><p>your temporary password is <b>⟨!pwq⟩</b>.<br>It is valid for 24 hours.</p>
@@ password mail_code html html
<li>Login: <code>⟨user⟩</code></li><li>Password: <code>⟨!pwq⟩</code></li>
@@ token meta html html
<meta name="api-token" content="⟨!opaque⟩">
@@ password data html html
<div id="app" data-user="⟨user⟩" data-password="⟨!pwq⟩"></div>
@@ password email prose none
From: it-helpdesk
Subject: Your access to ⟨sys⟩

Dear colleague,

your account has been created.

    User name:         ⟨user⟩
    Initial password:  ⟨!pwl⟩

Please sign in within seven days.
@@ password chat prose none
[09:41] ⟨user⟩: what's the password for ⟨sys⟩ again?
[09:42] ⟨user2⟩: password is ⟨!pw⟩
[09:42] ⟨user⟩: thx
@@ private_key chat prose none
it says invalid format, this is the key I use:

⟨!pem⟩

can you convert it?
"""

ENTRIES = entries(LOGS) + entries(JSON) + entries(TABLES)
