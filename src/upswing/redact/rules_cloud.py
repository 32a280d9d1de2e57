"""Which credentials open clouds, hosts, databases and what watches over them?"""

from __future__ import annotations

from .build import ALNUM, HEX, URL64, example_value, keyword_context_rule, prefixed_token_rule
from .rule import Anchor, Rule

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_EXAMPLE_UUID = "-".join(example_value(n, HEX) for n in (8, 4, 4, 4, 12))

RULES = (
    prefixed_token_rule("aws-access-key-id", ("AKIA", "ASIA", "ABIA", "ACCA", "A3T1"), "A-Z0-9", 16, about="AWS access key ids"),
    keyword_context_rule("aws-secret-key", ("aws_secret", "aws-secret", "awssecret", "secret_access_key", "secretaccesskey", "secret_key", "secretkey"), r"[A-Za-z0-9/+=]{40}", priority=58, example="aws_secret_access_key = " + example_value(40), about="AWS secret access keys"),
    keyword_context_rule("aws-session-token", ("aws_session_token", "sessiontoken"), r"[A-Za-z0-9/+=]{100,2000}", priority=58, example="aws_session_token = " + example_value(120), about="AWS session tokens"),
    prefixed_token_rule("google-oauth-secret", "GOCSPX-", URL64, 28, about="Google OAuth client secrets"),
    prefixed_token_rule("google-oauth-token", "ya29.", URL64, 30, 400, about="Google OAuth access tokens"),
    prefixed_token_rule("google-refresh-token", "1//0", URL64, 40, 120, about="Google OAuth refresh tokens"),
    keyword_context_rule("azure-storage-key", ("accountkey", "azure_storage"), r"[A-Za-z0-9+/]{86}==", priority=70, example="AccountKey=" + example_value(86) + "==", about="Azure storage account keys"),
    keyword_context_rule("azure-shared-key", ("sharedaccesskey", "sharedsecret"), r"[A-Za-z0-9+/]{42,86}={1,2}", priority=70, example="SharedAccessKey=" + example_value(43) + "=", about="Azure Service Bus, Event Hub and IoT keys"),
    keyword_context_rule("azure-sas", ("sig",), r"[A-Za-z0-9%+/]{40,90}(?:%3[dD]|=)", gap="=", follow="=[A-Za-z0-9%+/]{10}", example="?sv=2024-01-01&sig=" + example_value(43) + "%3D", about="Azure shared access signatures"),
    keyword_context_rule("azure-client-secret", ("azure", "client_secret", "clientsecret"), r"[A-Za-z0-9_~.\-]{3}8Q~[A-Za-z0-9_~.\-]{31,34}", priority=62, example="AZURE_CLIENT_SECRET=abc8Q~" + example_value(34), about="Azure AD client secrets"),
    keyword_context_rule("azure-openai-key", ("azure_openai", "ocp-apim-subscription-key", "cognitive"), r"[A-Za-z0-9]{32}|[A-Za-z0-9]{84}", example="AZURE_OPENAI_API_KEY=" + example_value(32, HEX), about="Azure AI service keys"),
    prefixed_token_rule("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), HEX, 64, about="DigitalOcean tokens", example="dop_v1_" + example_value(64, HEX)),
    keyword_context_rule("cloudflare-token", ("cloudflare", "cf_api", "cf-api", "x-auth-key"), r"[A-Za-z0-9_\-]{37,45}", example="CLOUDFLARE_API_TOKEN=" + example_value(40), about="Cloudflare tokens and global keys"),
    prefixed_token_rule("cloudflare-ca-key", "v1.0-", HEX, 24, tail=r"-[0-9a-f]{146}", example="v1.0-" + example_value(24, HEX) + "-" + example_value(146, HEX), about="Cloudflare origin CA keys"),
    prefixed_token_rule("heroku-key", "HRKU-", URL64, 36, 70, about="Heroku keys"),
    keyword_context_rule("heroku-uuid-key", ("heroku",), _UUID, kind="heroku-key", example="HEROKU_API_KEY=" + _EXAMPLE_UUID, about="Heroku keys of the older form"),
    prefixed_token_rule("vercel-prefixed-token", ("vcp_", "vca_", "vci_"), ALNUM, 24, 60, kind="vercel-token", about="Vercel tokens"),
    keyword_context_rule("vercel-token", ("vercel", "now_token"), "[A-Za-z0-9]{24}", example="VERCEL_TOKEN=" + example_value(24), about="Vercel tokens of the older form"),
    prefixed_token_rule("netlify-token", "nfp_", ALNUM, 36, 50, about="Netlify tokens"),
    prefixed_token_rule("fly-token", ("fm1_", "fm1r_", "fm1a_", "fm2_", "fo1_"), r"A-Za-z0-9+/=_,\-", 40, 1500, about="Fly.io tokens"),
    prefixed_token_rule("supabase-token", ("sbp_", "sb_secret_"), "A-Za-z0-9_", 28, 60, about="Supabase tokens and secret keys"),
    prefixed_token_rule("planetscale-token", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"), r"A-Za-z0-9_.=\-", 32, 64, about="PlanetScale tokens and passwords"),
    prefixed_token_rule("neon-key", "napi_", ALNUM, 40, 80, about="Neon keys"),
    prefixed_token_rule("databricks-token", "dapi", HEX, 32, tail=r"(?:-\d)?", example="dapi" + example_value(32, HEX), about="Databricks tokens"),
    keyword_context_rule("snowflake-password", ("snowflake_password", "snowflake_pat", "snowflake_token"), r"[^\s\"'`\\\x00]{8,200}", gap=r"""["'\]]{0,2}[ \t]{0,3}[:=][ \t]{0,3}["'`]?""", follow=r"""["'\]]{0,2}[ \t]{0,3}[:=]""", example="SNOWFLAKE_PASSWORD=" + example_value(12), about="Snowflake passwords and tokens"),
    keyword_context_rule("datadog-key", ("datadog", "dd_api_key", "dd_app_key", "dd-api-key", "dd-application-key"), "[0-9a-f]{32}|[0-9a-f]{40}", example="DD_API_KEY=" + example_value(32, HEX), about="Datadog API and application keys"),
    prefixed_token_rule("newrelic-key", ("NRAK-", "NRJS-", "NRII-", "NRRA-"), URL64, 19, 42, about="New Relic keys"),
    prefixed_token_rule("sentry-token", ("sntrys_", "sntryu_"), r"A-Za-z0-9+/=_\-", 40, 400, about="Sentry tokens"),
    prefixed_token_rule("grafana-token", ("glsa_", "glc_"), r"A-Za-z0-9+/=_", 32, 400, about="Grafana service account and cloud tokens"),
    keyword_context_rule("pagerduty-key", ("pagerduty", "pd_api"), r"[A-Za-z0-9_+\-]{20}|[0-9a-f]{32}", example="PAGERDUTY_TOKEN=" + example_value(20), about="PagerDuty keys"),
    prefixed_token_rule("vault-token", ("hvs.", "hvb.", "hvr."), URL64, 24, 300, about="HashiCorp Vault tokens"),
    Rule("terraform-token", r"\.atlasv1\.[A-Za-z0-9_\-=]{60,70}", anchors=(Anchor(".atlasv1.", width=9),), back="[A-Za-z0-9]{14}", split=True, priority=60, trusted=True, example=example_value(14) + ".atlasv1." + example_value(67), about="Terraform Cloud tokens"),
    prefixed_token_rule("doppler-token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), r"A-Za-z0-9._\-", 40, 60, about="Doppler tokens"),
    prefixed_token_rule("pulumi-token", "pul-", HEX, 40, example="pul-" + example_value(40, HEX), about="Pulumi tokens"),
    prefixed_token_rule("age-secret-key", "AGE-SECRET-KEY-1", "A-Z0-9", 58, about="age identities"),
    prefixed_token_rule("onepassword-token", "ops_eyJ", URL64, 100, 2000, about="1Password service account tokens"),
    prefixed_token_rule("onepassword-secret-key", "A3-", "A-Z0-9", 6, tail=r"-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}", example="A3-" + "-".join(example_value(n, "A-Z0-9") for n in (6, 11, 5, 5, 5)), about="1Password secret keys"),
    prefixed_token_rule("tailscale-key", ("tskey-auth-", "tskey-api-", "tskey-client-"), URL64, 20, 80, about="Tailscale keys"),
    prefixed_token_rule("render-key", "rnd_", ALNUM, 28, 40, about="Render keys"),
    prefixed_token_rule("alibaba-key-id", "LTAI", ALNUM, 20, 24, about="Alibaba Cloud key ids"),
    prefixed_token_rule("dynatrace-token", "dt0c01.", "A-Z0-9", 24, tail=r"\.[A-Z0-9]{64}", example="dt0c01." + example_value(24, "A-Z0-9") + "." + example_value(64, "A-Z0-9"), about="Dynatrace tokens"),
    keyword_context_rule("confluent-secret", ("confluent", "sasl_password", "sasl.password"), r"[A-Za-z0-9+/]{64}", example="CONFLUENT_SECRET=" + example_value(64), about="Confluent Cloud secrets"),
    keyword_context_rule("mongodb-atlas-key", ("atlas_private", "mongodb_atlas"), _UUID, example="ATLAS_PRIVATE_KEY=" + _EXAMPLE_UUID, about="MongoDB Atlas keys"),
)  # fmt: skip
