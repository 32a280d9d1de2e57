"""Credentials where machines read them: settings, manifests, code, scripts and requests."""

from bench.redaction_cases._heldout_fill import entries

SETTINGS = """
@@ password env config none
APP_ENV=production
DB_HOST=⟨host⟩
DB_USER=⟨user⟩
DB_PASSWORD=⟨!pw⟩
LOG_LEVEL=info
@@ password env_quoted config none
export PGUSER=⟨user⟩
export PGPASSWORD="⟨!pwq⟩"
export PGDATABASE=⟨db⟩
@@ password env_single config none
SMTP_HOST=⟨host⟩
SMTP_PASS='⟨!pwq⟩'
SMTP_PORT=587
@@ secret env config none
SESSION_SECRET=⟨!opaque⟩
DJANGO_SECRET_KEY='⟨!opaque2⟩'
DEBUG=0
@@ vendor_key env config none
OPENAI_API_KEY=⟨!openai⟩
STRIPE_SECRET_KEY=⟨!stripe⟩
SENDGRID_API_KEY=⟨!sendgrid⟩
@@ aws env config none
[default]
aws_access_key_id = ⟨!awsid⟩
aws_secret_access_key = ⟨!awssecret⟩
region = eu-central-1
@@ azure env config none
AZURE_TENANT_ID=⟨uuid⟩
AZURE_CLIENT_ID=⟨uuid2⟩
AZURE_CLIENT_SECRET=⟨!azure⟩
@@ password compose config none
services:
  db:
    image: postgres:16
    environment:
      POSTGRES_USER: ⟨user⟩
      POSTGRES_PASSWORD: ⟨!pws⟩
    ports:
      - "5432:5432"
@@ password compose_list config none
  mysql:
    image: mysql:8.4
    environment:
      - MYSQL_DATABASE=⟨db⟩
      - MYSQL_ROOT_PASSWORD=⟨!pws⟩
      - MYSQL_PASSWORD=⟨!pws2⟩
@@ password k8s_data config base64
apiVersion: v1
kind: Secret
metadata:
  name: ⟨db⟩-credentials
type: Opaque
data:
  password: ⟨!pwq⟩
@@ password k8s_string config none
apiVersion: v1
kind: Secret
metadata:
  name: ⟨db⟩-credentials
stringData:
  username: ⟨user⟩
  password: "⟨!pwq⟩"
@@ password k8s_env config none
        env:
        - name: LOG_LEVEL
          value: debug
        - name: DB_PASSWORD
          value: "⟨!pwq⟩"
@@ password helm config none
auth:
  existingSecret: ""
  rootPassword: "⟨!pwq⟩"
  replicationPassword: ⟨!pws⟩
@@ password yaml config none
mail:
  host: ⟨host⟩
  username: ⟨user⟩
  password: ⟨!pwl⟩
  tls: true
@@ password yaml_passphrase config none
borg:
  repo: ssh://⟨user⟩@⟨host⟩/./backup
  encryption_passphrase: "⟨!pwq⟩"
@@ password ansible config none
all:
  hosts:
    ⟨host⟩:
      ansible_user: ⟨user⟩
      ansible_become_pass: ⟨!pws⟩
      ansible_ssh_pass: '⟨!pwq⟩'
@@ password terraform config none
resource "aws_db_instance" "main" {
  engine         = "postgres"
  username       = "⟨user⟩"
  password       = "⟨!pwq⟩"
  instance_class = "db.t3.medium"
}
@@ secret tfvars config none
region        = "westeurope"
client_id     = "⟨uuid⟩"
client_secret = "⟨!azure⟩"
@@ password terraform_default config none
variable "db_password" {
  type      = string
  sensitive = true
  default   = "⟨!pwq⟩"
}
@@ password properties config none
spring.datasource.url=jdbc:postgresql://⟨host⟩:5432/⟨db⟩
spring.datasource.username=⟨user⟩
spring.datasource.password=⟨!pw⟩
spring.jpa.show-sql=false
@@ password ini config none
[database]
host = ⟨host⟩
user = ⟨user⟩
passwd = ⟨!pw⟩
@@ password php_define code none
define( 'DB_NAME', '⟨db⟩' );
define( 'DB_USER', '⟨user⟩' );
define( 'DB_PASSWORD', '⟨!pwq⟩' );
define( 'DB_HOST', 'localhost' );
@@ secret php_define code none
define('AUTH_KEY',         '⟨!opaque⟩');
define('SECURE_AUTH_KEY',  '⟨!opaque2⟩');
@@ password netrc config none
machine ⟨host⟩
  login ⟨user⟩
  password ⟨!pws⟩
@@ password netrc_line config none
machine ⟨host⟩ login ⟨user⟩ password ⟨!pw⟩
@@ password pgpass config none
⟨host⟩:5432:⟨db⟩:⟨user⟩:⟨!pws⟩
@@ password pgpass_cat shell none
$ cat ~/.pgpass
⟨host⟩:5432:*:⟨user⟩:⟨!pws⟩
localhost:5433:⟨db⟩:postgres:⟨!pws2⟩
@@ password_hash shadow config none
root:⟨!crypt⟩:19834:0:99999:7:::
daemon:*:19769:0:99999:7:::
⟨user⟩:⟨!crypt2⟩:20011:0:99999:7:::
@@ password_hash htpasswd config none
⟨user⟩:⟨!crypt⟩
@@ vendor_key npmrc config none
registry=https://registry.npmjs.org/
//registry.npmjs.org/:_authToken=⟨!npm⟩
@@ token pypirc config none
[pypi]
username = __token__
password = pypi-AgEIcHlwaS5vcmc⟨!opaque⟩
@@ token docker_config json json
{"auths": {"https://index.docker.io/v1/": {"auth": "⟨!basic⟩"}}}
@@ password xml config html
<server>
  <id>nexus</id>
  <username>⟨user⟩</username>
  <password>⟨!pwq⟩</password>
</server>
@@ password web_config config html
<add name="Main" connectionString="Server=⟨host⟩;Database=⟨db⟩;User Id=⟨user⟩;Password=⟨!pws⟩;" />
@@ secret web_config config html
<appSettings>
  <add key="ClientSecret" value="⟨!azure⟩" />
  <add key="Retries" value="3" />
</appSettings>
@@ password wpa config none
network={
    ssid="⟨sys⟩-guest"
    psk="⟨!pwq⟩"
}
@@ secret wireguard config none
[Interface]
Address = 10.8.0.2/24
PrivateKey = ⟨!wgkey⟩
DNS = 10.8.0.1
@@ private_key pem config none
⟨!pem⟩
@@ private_key pem_yaml config none
stringData:
  tls.key: |
⟨!pemyaml⟩
"""

CODE = """
@@ password python code none
conn = psycopg.connect(host="⟨host⟩", user="⟨user⟩", password="⟨!pwq⟩", dbname="⟨db⟩")
@@ password python_const code none
# TODO: move to the vault
SMTP_PASSWORD = "⟨!pwq⟩"
TIMEOUT = 30
@@ password python_dict code none
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.mysql",
        "USER": "⟨user⟩",
        "PASSWORD": "⟨!pwq⟩",
        "HOST": "⟨host⟩",
    }
}
@@ password argument_list code none
subprocess.run(["mysqldump", "--user", "⟨user⟩", "--password", "⟨!pwq⟩", "⟨db⟩"], check=True)
@@ password argument_equals code none
cmd = ["restic", "-r", "/srv/backup", f"--host={name}", "--password=⟨!pws⟩", "backup"]
@@ vendor_key python code none
client = OpenAI(api_key="⟨!openai⟩", timeout=20)
@@ vendor_key js code none
const stripe = require('stripe')('⟨!stripe⟩');
@@ token js code none
const res = await fetch(url, { headers: { 'X-Api-Key': '⟨!opaque⟩', Accept: 'application/json' } });
@@ password js code none
const knex = require('knex')({
  client: 'pg',
  connection: { host: '⟨host⟩', user: '⟨user⟩', password: '⟨!pwq⟩', database: '⟨db⟩' },
});
@@ password js_compare code none
if (req.body.user === '⟨user⟩' && req.body.password === '⟨!pwq⟩') {
  return next();
}
@@ password go code none
cfg := mysql.Config{
	User:   "⟨user⟩",
	Passwd: "⟨!pws⟩",
	Addr:   "⟨host⟩:3306",
}
@@ token go code none
const apiToken = "⟨!opaque⟩"
@@ password java code none
dataSource.setUsername("⟨user⟩");
dataSource.setPassword("⟨!pwq⟩");
@@ password csharp code none
var cred = new NetworkCredential("⟨user⟩", password: "⟨!pwq⟩");
@@ password ruby code none
ActiveRecord::Base.establish_connection(adapter: 'mysql2', username: '⟨user⟩', password: '⟨!pwq⟩')
@@ password ruby_rocket code none
Net::SSH.start('⟨host⟩', '⟨user⟩', :password => '⟨!pwq⟩') do |ssh|
@@ password rust code none
let opts = PgConnectOptions::new().host("⟨host⟩").username("⟨user⟩").password("⟨!pwq⟩");
@@ wallet js code none
const wallet = new ethers.Wallet("0x⟨!hexkey⟩", provider); // private key of the deployer
@@ wallet env config none
DEPLOYER_PRIVATE_KEY=⟨!hexkey⟩
MNEMONIC="⟨!mnemonic⟩"
RPC_URL=https://⟨host⟩
@@ wallet wif code none
key = Key(wif="⟨!wif⟩")
@@ password sql_identified sql none
CREATE USER '⟨user⟩'@'%' IDENTIFIED BY '⟨!pwq⟩';
GRANT SELECT ON ⟨db⟩.* TO '⟨user⟩'@'%';
@@ password sql_with sql none
CREATE ROLE ⟨user⟩ WITH LOGIN PASSWORD '⟨!pwq⟩' VALID UNTIL 'infinity';
@@ password sql_alter sql none
ALTER USER ⟨user⟩ PASSWORD '⟨!pwq⟩';
@@ password sql_mysql_native sql none
ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '⟨!pwq⟩';
FLUSH PRIVILEGES;
@@ password sql_mssql sql none
CREATE LOGIN [⟨user⟩] WITH PASSWORD = N'⟨!pwq⟩', CHECK_POLICY = ON;
@@ password sql_oracle sql none
CREATE USER ⟨user⟩ IDENTIFIED BY "⟨!pwq⟩" DEFAULT TABLESPACE users;
@@ password sql_update sql none
UPDATE accounts SET password = '⟨!pwq⟩', updated_at = now() WHERE id = ⟨num⟩;
@@ password sql_insert sql none
INSERT INTO accounts (id, login, password) VALUES (⟨num⟩, '⟨user⟩', '⟨!pwq⟩');
@@ password powershell shell none
$sec = ConvertTo-SecureString "⟨!pwq⟩" -AsPlainText -Force
$cred = New-Object System.Management.Automation.PSCredential ("⟨user⟩", $sec)
@@ password powershell_named shell none
$pw = ConvertTo-SecureString -String '⟨!pwq⟩' -AsPlainText -Force
@@ password powershell_var shell none
$Password = "⟨!pwq⟩"
Connect-ExchangeOnline -UserPrincipalName ⟨user⟩
@@ password net_use shell none
net user ⟨user⟩ /add
net use Z: \\\\⟨host⟩\\share /user:⟨user⟩ /password:⟨!pws⟩
@@ password mysql_p shell none
$ mysql -h ⟨host⟩ -u ⟨user⟩ --password='⟨!pwq⟩' ⟨db⟩ < dump.sql
@@ password mysql_p_attached shell none
mysql -u ⟨user⟩ -p'⟨!pwq⟩' -h ⟨host⟩ ⟨db⟩
@@ password sshpass shell none
sshpass -p '⟨!pwq⟩' ssh ⟨user⟩@⟨host⟩ uptime
@@ password pgpassword shell none
PGPASSWORD=⟨!pws⟩ psql -h ⟨host⟩ -U ⟨user⟩ ⟨db⟩ -c 'select 1'
@@ password curl_u shell none
curl -u ⟨user⟩:⟨!pws⟩ https://⟨host⟩/api/v2/status
@@ password curl_user shell none
curl --user '⟨user⟩:⟨!pws⟩' -X POST https://⟨host⟩/rest/api/2/issue/⟨num⟩
@@ password curl_json shell none
curl -X POST https://⟨host⟩/login -H 'Content-Type: application/json' -d '{"username": "⟨user⟩", "password": "⟨!pwq⟩"}'
@@ password curl_form shell url
curl -d 'username=⟨user⟩&password=⟨!pwq⟩&remember=1' https://⟨host⟩/session
@@ token curl_bearer shell none
curl -H "Authorization: Bearer ⟨!opaque⟩" https://⟨host⟩/v1/items?limit=20
@@ token curl_jwt shell none
curl -sS -H 'Authorization: Bearer ⟨!jwt⟩' https://⟨host⟩/me
@@ token curl_basic shell none
curl -H "Authorization: Basic ⟨!basic⟩" https://⟨host⟩/api
@@ token curl_token shell none
http GET https://⟨host⟩/api/devices "Authorization: Token ⟨!opaque⟩"
@@ token curl_apikey shell none
curl -H 'Authorization: ApiKey ⟨!opaque⟩' https://⟨host⟩:9200/_cat/indices
@@ token curl_header shell none
curl -H "X-Auth-Token: ⟨!opaque⟩" -H "X-Api-Key: ⟨!opaque2⟩" https://⟨host⟩/
@@ token url_query shell none
wget "https://⟨host⟩/export?format=csv&api_key=⟨!opaque⟩&page=2"
@@ token git_remote shell none
git clone https://⟨user⟩:⟨!github⟩@github.com/acme/⟨db⟩.git
@@ password history shell none
  501  cd /srv/⟨db⟩
  502  docker login -u ⟨user⟩ -p ⟨!pws⟩ ⟨host⟩
  503  docker compose pull
@@ password history_export shell none
  118  export DB_PASS=⟨!pws⟩
  119  ./migrate.sh --env staging
@@ password echo_chpasswd shell none
echo "⟨user⟩:⟨!pws⟩" | sudo chpasswd
@@ password echo_sudo shell none
echo '⟨!pwq⟩' | sudo -S systemctl restart nginx  # sudo password
@@ password redis shell none
redis-cli -h ⟨host⟩ -a ⟨!pws⟩ --no-auth-warning ping
@@ password openssl shell none
openssl pkcs12 -in cert.p12 -nodes -passin pass:⟨!pws⟩
@@ password keytool shell none
keytool -list -keystore app.jks -storepass ⟨!pws⟩
@@ aws shell shell none
export AWS_ACCESS_KEY_ID=⟨!awsid⟩
export AWS_SECRET_ACCESS_KEY=⟨!awssecret⟩
aws s3 ls
@@ vendor_key shell shell none
huggingface-cli login --token ⟨!hf⟩
glab auth login --token ⟨!gitlab⟩
@@ vendor_key telegram shell none
curl https://api.telegram.org/bot⟨!telegram⟩/getUpdates
@@ password uri code none
engine = create_engine("postgresql+psycopg://⟨user⟩:⟨!pws⟩@⟨host⟩:5432/⟨db⟩")
@@ password uri_encoded config url
DATABASE_URL=mysql://⟨user⟩:⟨!pwq⟩@⟨host⟩:3306/⟨db⟩?charset=utf8mb4
@@ password uri_mongo config none
MONGO_URI: mongodb+srv://⟨user⟩:⟨!pws⟩@⟨host⟩/⟨db⟩?retryWrites=true&w=majority
@@ password uri_redis config none
CELERY_BROKER_URL=redis://:⟨!pws⟩@⟨host⟩:6379/0
@@ password adonet code none
"DefaultConnection": "Server=tcp:⟨host⟩,1433;Initial Catalog=⟨db⟩;User ID=⟨user⟩;Password=⟨!pws⟩;Encrypt=True;"
@@ password odbc code none
cnxn = pyodbc.connect("DRIVER={ODBC Driver 18 for SQL Server};SERVER=⟨host⟩;UID=⟨user⟩;PWD=⟨!pws⟩")
@@ password libpq code none
psql "host=⟨host⟩ port=5432 dbname=⟨db⟩ user=⟨user⟩ password=⟨!pws⟩ sslmode=require"
@@ azure connection config none
DefaultEndpointsProtocol=https;AccountName=⟨db⟩store;AccountKey=⟨!azurestore⟩;EndpointSuffix=core.windows.net
"""

ENTRIES = entries(SETTINGS) + entries(CODE)
