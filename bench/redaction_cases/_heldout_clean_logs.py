"""Logs and shell sessions that speak of secrets and hold none; nothing in them is to be changed."""

from bench.redaction_cases._heldout_fill import entries

LOGS = """
@@ log sshd log none
⟨time⟩ ⟨db⟩ sshd[⟨num⟩]: Failed password for invalid user admin from 10.3.4.⟨small⟩ port ⟨num2⟩ ssh2
⟨time⟩ ⟨db⟩ sshd[⟨num⟩]: Connection closed by invalid user admin 10.3.4.⟨small⟩ port ⟨num2⟩ [preauth]
@@ log pam log none
⟨time⟩ pam_unix(sudo:auth): authentication failure; logname= uid=⟨num⟩ euid=0 tty=/dev/pts/1
⟨time⟩ passwd: password updated successfully
@@ log parser log none
SyntaxError: Unexpected token '<', "<!doctype "... is not valid JSON
    at JSON.parse (<anonymous>)
    at load (/srv/app/index.js:⟨num⟩:⟨percent⟩)
@@ log parser log none
error: unexpected token: '}' at line ⟨num⟩, column ⟨percent⟩
@@ log pytest log none
tests/test_auth.py::test_password_is_hashed PASSED [ ⟨percent⟩%]
tests/test_auth.py::test_token_expires PASSED [100%]
==== ⟨small⟩ passed, 2 skipped in ⟨price⟩s ====
@@ log tap log none
# tests ⟨small⟩
# pass ⟨small⟩
# fail 0
pass: ⟨small⟩, fail: 0, skip: ⟨percent⟩
@@ log git log none
commit ⟨commit⟩
Date:   Mon Jun 2 10:14:33 2025 +0200

    Reset tokens expire after an hour
@@ log git shell none
$ git log --oneline -3
⟨short⟩ Fix the password reset mail
⟨short2⟩ Rename secret to shared_secret in the docs
⟨short3⟩ Release ⟨version⟩
@@ log docker shell none
$ docker pull postgres:16
16: Pulling from library/postgres
Digest: sha256:⟨sha⟩
Status: Downloaded newer image for postgres:16
@@ log sums shell none
$ sha256sum *.iso
⟨sha⟩  debian-12.iso
⟨sha2⟩  ubuntu-24.04.iso
@@ log sums shell none
$ md5sum backup.tar
⟨md⟩  backup.tar
@@ log vllm log none
⟨time⟩ INFO engine: prompt throughput: ⟨price⟩ tokens/s, generation throughput: ⟨price2⟩ tokens/s
@@ log access log none
10.0.0.⟨small⟩ - - [⟨time⟩] "GET /password/forgot HTTP/1.1" 200 ⟨num⟩
10.0.0.⟨small⟩ - - [⟨time⟩] "POST /token/refresh HTTP/1.1" 401 ⟨small⟩
@@ log app log none
⟨time⟩ WARN auth: password is missing for request ⟨uuid⟩
⟨time⟩ WARN auth: token has expired, id=⟨uuid2⟩
⟨time⟩ INFO auth: token refreshed in ⟨small⟩ms
@@ log app log none
⟨time⟩ ERROR db: password authentication failed for user "⟨user⟩"
⟨time⟩ DETAIL: Connection matched file "pg_hba.conf" line ⟨small⟩
@@ log mysql log none
ERROR 1045 (28000): Access denied for user '⟨user⟩'@'localhost' (using password: YES)
@@ log traceback log none
Traceback (most recent call last):
  File "/srv/app/auth.py", line ⟨num⟩, in login
    token = create_token(user, password)
TypeError: create_token() missing 1 required positional argument: 'secret'
@@ log kubectl shell none
$ kubectl get secrets
NAME             TYPE     DATA   AGE
db-credentials   Opaque   2      ⟨small⟩d
tls-⟨db⟩         kubernetes.io/tls   2   ⟨percent⟩d
@@ log shell shell none
$ read -s -p "Password: " PASSWORD
$ mysql -u ⟨user⟩ -p ⟨db⟩ < schema.sql
Enter password:
@@ log shell shell none
curl -H "Authorization: Bearer $TOKEN" https://⟨host⟩/v1/items/⟨num⟩
export PASSWORD="$(pass show ⟨db⟩/admin)"
@@ log shell shell none
$ apt list --upgradable
openssl/stable ⟨version⟩-1 amd64 [upgradable from: ⟨version2⟩-1]
passwd/stable 1:4.13 amd64
@@ log shell shell none
$ ping -c 1 127.0.0.1
64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.0⟨percent⟩ ms
@@ log shell shell none
$ ls -l
-rw-r--r-- 1 ⟨user⟩ ⟨user⟩ ⟨num⟩ Jun  2 10:15 password_reset.html
-rw-r--r-- 1 ⟨user⟩ ⟨user⟩ ⟨num2⟩ Jun  2 10:15 tokens.csv
@@ log cron log none
⟨time⟩ CRON[⟨num⟩]: (root) CMD (test -x /usr/sbin/anacron || run-parts /etc/cron.daily)
@@ log kernel log none
[ ⟨num⟩.⟨num2⟩] usb 1-⟨percent⟩: New USB device found, idVendor=0bda, idProduct=8153, bcdDevice=31.00
@@ log table log none
 step | tokens | loss
------+--------+---------
 ⟨small⟩ | ⟨num⟩ | ⟨float⟩
@@ log csv csv none
order,isbn,price,shipped
⟨order⟩,⟨isbn⟩,⟨price⟩,⟨day⟩
⟨order2⟩,⟨isbn2⟩,⟨price2⟩,⟨day2⟩
@@ log csv csv none
id,event,at,duration_ms
⟨uuid⟩,password_reset_requested,⟨time⟩,⟨num⟩
⟨uuid2⟩,token_revoked,⟨time2⟩,⟨small⟩
"""

ENTRIES = entries(LOGS)
