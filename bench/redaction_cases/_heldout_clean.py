"""Code, settings and JSON that speak of secrets and hold none; nothing in them is to be changed."""

from bench.redaction_cases._heldout_fill import entries

CODE = """
@@ code python code none
def authenticate(username: str, password: str) -> bool:
    user = find_user(username)
    if user is None:
        return False
    return verify_password(password, user.password_hash)
@@ code python code none
password = get_password()
token = request.headers.get("Authorization")
secret = config["secret"]
api_key = os.environ["API_KEY"]
@@ code python code none
@dataclass
class Session:
    token: str
    user_id: int
    secret: bytes | None = None
    expires_at: datetime = field(default_factory=now)
@@ code python code none
parser.add_argument("--password", help="password of the database user")
parser.add_argument("--token", type=str, default=None, required=False)
args = parser.parse_args()
@@ code python code none
for token in tokenizer.encode(text):
    counts[token] += 1
max_tokens = ⟨num⟩
total_tokens = sum(counts.values())
@@ code python code none
while True:
    token = lexer.next_token()
    if token.type == TokenType.EOF:
        break
    tokens.append(token)
@@ code python code none
password = getpass.getpass("Password: ")
if password != getpass.getpass("Repeat password: "):
    raise SystemExit("The passwords do not match.")
@@ code python code none
PASSWORD_MIN_LENGTH = ⟨small⟩
PASSWORD_RESET_TIMEOUT = ⟨num⟩
SESSION_COOKIE_SECURE = True
TOKEN_EXPIRY_SECONDS = ⟨num2⟩
@@ code python code none
LED_PIN = 13
BUTTON_PIN = ⟨percent⟩
GPIO.setup(LED_PIN, GPIO.OUT)
@@ code python code none
client = OpenAI(api_key=os.getenv("OPENAI_API_KEY"))
response = client.chat.completions.create(model=model, messages=messages, max_tokens=⟨num⟩)
@@ code python code none
def test_wrong_password_is_refused(client):
    response = client.post("/login", data={"user": "x", "password": ""})
    assert response.status_code == 401
    assert "password" in response.json()["errors"]
@@ code python code none
import secrets

token = secrets.token_urlsafe(32)
pin = "".join(secrets.choice("0123456789") for _ in range(6))
@@ code python code none
assert passed == ⟨small⟩, f"passed: {passed}, failed: {failed}"
compass = Compass(heading=⟨small2⟩)
bypass = True
passenger_count = ⟨percent⟩
@@ code python code none
class LoginForm(forms.Form):
    username = forms.CharField(max_length=⟨small⟩)
    password = forms.CharField(widget=forms.PasswordInput)
@@ code python code none
digest = hashlib.sha256(path.read_bytes()).hexdigest()
if digest != "⟨sha⟩":
    raise ValueError("the download is damaged")
@@ code python code none
__version__ = "⟨version⟩"
BUILD = "⟨short⟩"
RELEASED = "⟨day⟩"
@@ code javascript code none
const { token, setToken } = useAuth();
const [password, setPassword] = useState('');
useEffect(() => { if (!token) navigate('/login'); }, [token]);
@@ code javascript code none
const token = localStorage.getItem('token');
axios.defaults.headers.common.Authorization = `Bearer ${token}`;
@@ code javascript code none
if (!password || password.length < ⟨percent⟩) {
  errors.password = t('form.password.tooShort');
}
@@ code javascript code none
passport.use(new LocalStrategy((username, password, done) => {
  User.findOne({ username }, (err, user) => done(err, user));
}));
@@ code javascript code none
module.exports = {
  secret: process.env.SESSION_SECRET,
  password: process.env.DB_PASSWORD,
  port: process.env.PORT || ⟨num⟩,
};
@@ code javascript code none
!function(e,t){"object"==typeof exports?module.exports=t():e.lib=t()}(this,function(){var n=⟨num⟩;return{v:"⟨version⟩",h:function(e){return e<<5^e>>>2},k:[⟨small⟩,⟨percent⟩,⟨num2⟩]}});
@@ code javascript code none
(()=>{"use strict";var e={⟨num⟩:(e,t,r)=>{r.d(t,{Z:()=>o});const o=r(⟨num2⟩)},⟨small⟩:e=>{e.exports="data:image/png;base64,⟨png⟩"}};})();
@@ code typescript code none
interface Credentials {
  username: string;
  password: string;
  token?: string;
  pin: number | null;
}
@@ code typescript code none
export async function resetPassword(email: string, token: string): Promise<void> {
  await api.post('/password/reset', { email, token });
}
@@ code go code none
type Config struct {
	Host     string `yaml:"host"`
	Password string `yaml:"password"`
	Token    string `yaml:"token,omitempty"`
}
@@ code go code none
token, err := jwt.Parse(raw, func(t *jwt.Token) (interface{}, error) {
	return secret, nil
})
if err != nil {
	return fmt.Errorf("parse token: %w", err)
}
@@ code go code none
password := os.Getenv("PGPASSWORD")
if password == "" {
	log.Fatal("password is required")
}
@@ code java code none
public void setPassword(String password) {
    this.password = passwordEncoder.encode(password);
}
@@ code java code none
String token = request.getHeader("Authorization");
if (token == null || !token.startsWith("Bearer ")) {
    throw new UnauthorizedException("Token is missing");
}
@@ code rust code none
let token = tokens.peek().ok_or(ParseError::Eof)?;
let secret = std::env::var("APP_SECRET")?;
let map: std::collections::HashMap<String, u32> = std::collections::HashMap::new();
@@ code c code none
int check_pass(const char *pass, size_t len);
static const unsigned char table[] = { 0x⟨short⟩u & 0xff, 0x1f, 0x8b, 0x08, ⟨small⟩ };
@@ code sql sql none
SELECT id, login, password_hash, token_expires_at
FROM accounts
WHERE login = $1 AND password_reset_token IS NULL;
@@ code sql sql none
CREATE TABLE accounts (
    id bigint PRIMARY KEY,
    login text NOT NULL,
    password text NOT NULL,
    secret bytea,
    pin char(4)
);
@@ code sql sql none
ALTER TABLE users ADD COLUMN password VARCHAR(⟨small⟩) NOT NULL DEFAULT '';
COMMENT ON COLUMN users.password IS 'hash of the password, never the password';
@@ code sql sql none
INSERT INTO orders (id, placed, total) VALUES (⟨num⟩, '⟨time⟩', ⟨price⟩), (⟨num2⟩, '⟨time2⟩', ⟨price2⟩);
@@ code html html none
<label for="password">Password</label>
<input type="password" id="password" name="password" placeholder="Password" autocomplete="off">
<a href="/password/forgot">Forgot your password?</a>
@@ code html html none
<img alt="chart ⟨small⟩" src="data:image/png;base64,⟨png⟩">
@@ code html html none
<p class="token keyword">return</p><span class="token string">'hello'</span>
<script src="/static/app.⟨short⟩.js" integrity="sha512-⟨integrity⟩"></script>
@@ code css code none
.password-field { color: #⟨short⟩; margin: ⟨percent⟩px; }
.token.comment { color: #6a737d; }
.pin::before { content: "\\2022"; }
@@ code diff code none
diff --git a/auth.py b/auth.py
index ⟨short⟩..⟨short2⟩ 100644
--- a/auth.py
+++ b/auth.py
@@ -⟨small⟩,7 +⟨small⟩,7 @@ def login(user, password):
-    return check(password)
+    return check(user, password)
"""

SETTINGS = """
@@ config yaml config none
env:
  - name: DB_PASSWORD
    valueFrom:
      secretKeyRef:
        name: db-credentials
        key: password
@@ config yaml config none
jobs:
  deploy:
    runs-on: ubuntu-24.04
    env:
      TOKEN: ${{ secrets.DEPLOY_TOKEN }}
      NPM_TOKEN: ${{ secrets.NPM_TOKEN }}
    steps:
      - uses: actions/checkout@⟨commit⟩
@@ config yaml config none
database:
  host: ⟨host⟩
  password: ${DB_PASSWORD}
  pool: ⟨small⟩
@@ config yaml config none
smtp:
  user: null
  password: null
  token: ""
  port: ⟨num⟩
@@ config env config none
DB_PASSWORD=$PASSWORD
API_KEY=<your-api-key>
SECRET_KEY=
TOKEN=${TOKEN}
@@ config terraform config none
variable "db_password" {
  type        = string
  sensitive   = true
  description = "Password of the database user"
}
resource "aws_db_instance" "main" {
  password = var.db_password
}
@@ config sshd config none
PasswordAuthentication no
PermitEmptyPasswords no
PubkeyAuthentication yes
MaxAuthTries ⟨percent⟩
@@ config nsswitch config none
passwd:         files systemd
group:          files systemd
shadow:         files
hosts:          files dns
@@ config passwd config none
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
⟨user⟩:x:⟨num⟩:⟨num⟩::/home/⟨user⟩:/bin/sh
@@ config pg_hba config none
# TYPE  DATABASE  USER  ADDRESS       METHOD
local   all       all                 peer
host    all       all   10.0.0.0/8    scram-sha-256
host    all       all   127.0.0.1/32  password
@@ config lock config none
requests==⟨version⟩ \\
    --hash=sha256:⟨sha⟩ \\
    --hash=sha256:⟨sha2⟩
@@ config lock config none
    "node_modules/left-pad": {
      "version": "⟨version⟩",
      "resolved": "https://registry.npmjs.org/left-pad/-/left-pad-⟨version⟩.tgz",
      "integrity": "sha512-⟨integrity⟩"
    },
@@ config lock config none
[[package]]
name = "token-stream"
version = "⟨version⟩"
checksum = "⟨sha⟩"
@@ config gosum config none
golang.org/x/crypto v0.31.0 h1:⟨gosum⟩
golang.org/x/crypto v0.31.0/go.mod h1:⟨gosum2⟩
@@ config docker config none
FROM python:3.12-slim@sha256:⟨sha⟩
ARG GIT_COMMIT=⟨commit⟩
LABEL version="⟨version⟩"
@@ config dhcp config none
subnet 192.168.⟨small⟩.0 netmask 255.255.255.0 {
  range 192.168.⟨small⟩.10 192.168.⟨small⟩.99;
}
@@ config policy config none
password_policy:
  min_length: 12
  require_digits: true
  max_age_days: ⟨small⟩
  history: 5
@@ config ini config none
[tokenizer]
pad_token = [PAD]
eos_token = </s>
unk_token_id = ⟨percent⟩
@@ config json json none
{"name": "reset-password", "version": "⟨version⟩", "scripts": {"token": "node token.js", "test": "jest"}, "private": true}
@@ json usage json none
{"id": "chatcmpl-⟨small⟩", "usage": {"prompt_tokens": ⟨num⟩, "completion_tokens": ⟨small⟩, "total_tokens": ⟨num2⟩}, "created": ⟨epoch⟩}
@@ json schema json none
{"type": "object", "properties": {"username": {"type": "string"}, "password": {"type": "string", "minLength": 8}, "token": {"type": "string"}}, "required": ["username", "password"]}
@@ json error json none
{"status": ⟨small⟩, "errors": {"password": ["This field is required."], "token": ["Token has expired."]}, "request_id": "⟨uuid⟩"}
@@ json order json none
{"order": "⟨order⟩", "total": ⟨price⟩, "currency": "EUR", "isbn": "⟨isbn⟩", "placed": "⟨time⟩", "items": ⟨percent⟩}
@@ json events json none
[{"ts": ⟨epoch_ms⟩, "id": "⟨uuid⟩", "kind": "password_changed"}, {"ts": ⟨epoch_ms2⟩, "id": "⟨uuid2⟩", "kind": "token_refreshed"}]
@@ json commit json none
{"sha": "⟨commit⟩", "message": "Hash the password before it is stored", "parents": ["⟨commit2⟩"], "files": ⟨percent⟩}
@@ json image json none
{"type": "image", "media_type": "image/png", "data": "⟨png⟩"}
@@ json metrics json none
{"loss": ⟨float⟩, "tokens_per_second": ⟨price⟩, "step": ⟨num⟩, "lr": 0.0003}
@@ json flags json none
{"forgotPassword": true, "showPassword": false, "passwordless": true, "secret": false, "pin": null, "limit": ⟨num⟩}
@@ json chat json none
{"messages": [{"role": "user", "content": "How do I change the password of my ⟨sys⟩ account?"}, {"role": "assistant", "content": "Open Settings, then Security, and choose Change password."}]}
@@ json embedding json none
{"object": "embedding", "index": ⟨percent⟩, "embedding": [⟨float⟩, -⟨float2⟩, ⟨float3⟩, -⟨float4⟩]}
"""

ENTRIES = entries(CODE) + entries(SETTINGS)
