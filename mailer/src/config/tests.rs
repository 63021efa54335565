//! What the file may say, and how it is told when it says something else.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;

const EXAMPLE: &str = include_str!("../../../cli/mailrl.example.toml");

fn read(text: &str) -> Result<MailConfig, String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mailrl.toml");
    std::fs::write(&path, text).unwrap();
    MailConfig::read(&path).map_err(|error| error.to_string().replace(directory.path().to_str().unwrap(), ""))
}

fn some(number: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(number)
}

#[test]
fn the_example_parses_and_shows_every_key() {
    let config: MailConfig = toml::from_str(EXAMPLE).unwrap();
    // Each pattern names all fields: a new one has to come into the example to compile here.
    let MailConfig {
        redis,
        graph,
        sendgrid,
        limits,
        mailbox,
        tenant,
        queue,
        store,
    } = config;
    let Redis { url, deadline_ms } = redis;
    assert!(url.is_some() && deadline_ms.is_some());
    let Graph {
        tenant: id,
        client_id,
        client_secret_file,
        client_secret_env,
        login_url,
        graph_url,
        timeout_s,
    } = graph;
    assert!(
        id.is_some() && client_id.is_some() && client_secret_file.is_some() && client_secret_env.is_some()
    );
    assert!(login_url.is_some() && graph_url.is_some() && timeout_s.is_some());
    let SendGrid {
        api_key_file,
        api_key_env,
        host,
        port,
        tls: _,
        timeout_s,
    } = sendgrid;
    assert!(api_key_file.is_some() && api_key_env.is_some() && timeout_s.is_some());
    assert!(host.is_some() && port.is_some() && EXAMPLE.contains("\ntls ="));
    let Limits {
        rate_limit_per_minute,
        rate_limit_recipients_per_day,
        concurrent,
    } = limits;
    assert!(
        rate_limit_per_minute.is_some() && rate_limit_recipients_per_day.is_some() && concurrent.is_some()
    );
    let MailboxConfig {
        provider,
        rate_limit_per_minute,
        rate_limit_recipients_per_day,
    } = mailbox[&Mailbox::new("campagne@example.com")];
    assert_eq!(provider, Provider::MicrosoftGraph);
    assert!(rate_limit_per_minute.is_some() && rate_limit_recipients_per_day.is_some());
    assert_eq!(
        mailbox[&Mailbox::new("orders@example.com")].provider,
        Provider::SendGrid
    );
    assert!(matches!(tenant["acme"], Tenant::Graph(_)));
    assert!(matches!(tenant["globex"], Tenant::SendGrid(_)));
    let Queue {
        redis_url,
        prefix,
        age_limit_h,
        retries,
        retry_pause_s,
        concurrency,
    } = queue;
    assert!(redis_url.is_some() && prefix.is_some() && age_limit_h.is_some() && retries.is_some());
    assert!(retry_pause_s.is_some() && concurrency.is_some());
    let Store { url } = store;
    assert!(url.is_some());
}

#[test]
fn the_example_shows_what_holds_without_it() {
    let shown: MailConfig = toml::from_str(EXAMPLE).unwrap();
    let usual = MailConfig::default();
    assert_eq!(shown.redis.url(), usual.redis.url());
    assert_eq!(shown.queue_redis_url(), usual.queue_redis_url());
    assert_eq!(shown.queue.prefix(), usual.queue.prefix());
    assert_eq!(shown.queue.policy(), usual.queue.policy());
    assert_eq!(shown.queue.concurrency(), usual.queue.concurrency());
    assert_eq!(shown.sendgrid.host(), usual.sendgrid.host());
    assert_eq!(shown.sendgrid.port(), usual.sendgrid.port());
    assert_eq!(shown.sendgrid.tls, usual.sendgrid.tls);
    assert_eq!(shown.sendgrid.timeout(), usual.sendgrid.timeout());
    assert_eq!(shown.graph.timeout(), usual.graph.timeout());
}

#[test]
fn a_wrong_key_is_told_with_file_line_and_the_keys_that_there_are() {
    let error = read("[redis]\nurl = 'redis://h'\n\n[limits]\nrate_limit = 3\n").unwrap_err();
    assert!(
        error.starts_with("/mailrl.toml, line 5: unknown key `rate_limit`"),
        "{error}"
    );
    for key in [
        "rate_limit_per_minute",
        "rate_limit_recipients_per_day",
        "concurrent",
    ] {
        assert!(error.contains(key), "{error}");
    }
    for (text, line) in [
        (
            "[mailbox.\"a@b\"]\nconcurrent = 3\n",
            "line 2: unknown key `concurrent`",
        ),
        (
            "[tenant.a]\nprovider = 'sendgrid'\napi_key = 'x'\n",
            "line 3: unknown key `api_key`",
        ),
        (
            "\n[graph]\nclient_secret = 'x'\n",
            "line 3: unknown key `client_secret`",
        ),
        ("[queue]\nredis = 'x'\n", "line 2: unknown key `redis`"),
        ("[redi]\n", "`redis`"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(line), "{error}");
    }
}

#[test]
fn a_wrong_value_is_told_without_it() {
    for text in [
        "redis = 'redis://u:hunter2@h'\n",
        "[redis]\ndeadline_ms = \"redis://u:hunter2@h\\\"\"\n",
        "[redis]\nurl = 'redis://u:hunter2@h\n",
        "[redis]\nurl = redis://u:hunter2@h\n",
        "[redis]\nurl = 'redis://u:hunter2@h' x\n",
        "[limits]\nrate_limit_per_minute = 'hunter2'\n",
        "[graph]\ngraph_url = 'https://u:hunter2@h?x'\n",
        "[sendgrid]\ntls = 'hunter2'\n",
        "[mailbox.'a@b']\nprovider = 'hunter2'\n",
        "[tenant.a]\nprovider = 'sendgrid'\napi_key_env = 'hunter2'\nhost = 'hunter2'\ntls = 'none'\n",
        "[queue]\nretries = 'hunter2'\n",
    ] {
        let error = read(text).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
        assert!(error.starts_with("/mailrl.toml, line "), "{error}");
    }
    let error = read("[limits]\nrate_limit_per_minute = 0\n").unwrap_err();
    assert!(error.contains("nonzero"), "{error}");
}

#[test]
fn what_does_not_fit_together_is_told_with_its_section_and_what_to_do() {
    let acme = "\n[tenant.acme]\nprovider = 'microsoft-graph'\n";
    let globex = "\n[tenant.globex]\nprovider = 'sendgrid'\n";
    for (text, line, says) in [
        ("\n[graph]\ntimeout_s = 0\n", 2, "set timeout_s to 1 to 3590"),
        (
            "\n[graph]\nlogin_url = 'login'\n",
            2,
            "login_url must be an http or https address",
        ),
        (
            "\n[sendgrid]\ntimeout_s = 3600\n",
            2,
            "set timeout_s to 1 to 3590",
        ),
        (
            "\n[sendgrid]\ntls = 'none'\n",
            2,
            "use \"implicit\" or \"starttls\"",
        ),
        (
            "\n[sendgrid]\ntls = 'no'\n",
            3,
            "write \"implicit\", \"starttls\" or \"none\"",
        ),
        (
            "\n[mailbox.'a@b']\nprovider = 'smtp'\n",
            3,
            "write \"microsoft-graph\" or \"sendgrid\"",
        ),
        (
            "[mailbox.'x@b']\n[mailbox.'a@b']\nprovider = 'sendgrid'\nrate_limit_per_minute = 3\n",
            2,
            "sendgrid has limits of its own",
        ),
        ("[mailbox.'a@b']\n[mailbox.'A@B']\n", 1, "names the same mailbox"),
        (&format!("{acme}client_id = 'a'\n"), 2, "no tenant: set it"),
        (&format!("{acme}tenant = 'a'\n"), 2, "no client_id: set it"),
        (
            &format!("{acme}tenant = 'a'\nclient_id = 'a'\n"),
            2,
            "set client_secret_file or",
        ),
        (
            &format!("{acme}port = 25\n"),
            2,
            "port is a key of the provider sendgrid",
        ),
        (globex, 2, "set api_key_file or api_key_env"),
        (
            &format!("{globex}tenant = 'a'\n"),
            2,
            "tenant is a key of the provider microsoft-graph",
        ),
        ("\n[tenant.initech]\n", 2, "provider"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(&format!("line {line}: ")), "{text}: {error}");
        assert!(error.contains(says), "{error}");
    }
    assert!(read("[sendgrid]\ntls = 'none'\nhost = '127.0.0.1'\n").is_ok());
}

#[test]
fn paths_of_secrets_count_from_the_file() {
    let text = "[graph]\nclient_secret_file = 'secret'\n[sendgrid]\napi_key_file = 'keys/key'\n\
                [tenant.a]\nprovider = 'sendgrid'\napi_key_file = '../a'\n";
    let config = read(text).unwrap();
    let Tenant::SendGrid(tenant) = &config.tenant["a"] else {
        panic!("{config:?}")
    };
    for (path, ends) in [
        (&config.graph.client_secret_file, "secret"),
        (&config.sendgrid.api_key_file, "keys/key"),
        (&tenant.api_key_file, "../a"),
    ] {
        let path = path.as_ref().unwrap();
        assert!(path.is_absolute() && path.ends_with(ends), "{path:?}");
    }
    let config = read("[graph]\nclient_secret_file = '/run/secret'\n").unwrap();
    assert_eq!(
        config.graph.client_secret_file.unwrap(),
        PathBuf::from("/run/secret")
    );
}

#[test]
fn a_secret_comes_from_the_variable_else_from_the_file_and_what_is_missing_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let account = |variable: Option<&str>, path: Option<&Path>| {
        let graph = Graph {
            tenant: Some("contoso".into()),
            client_id: Some("app".into()),
            client_secret_env: variable.map(str::to_owned),
            client_secret_file: path.map(Path::to_owned),
            ..Graph::default()
        };
        graph.account().map_err(|error| error.to_string())
    };
    // The one variable that cargo sets for every test.
    let (set, unset) = (Some("CARGO_PKG_NAME"), Some("hunter2_NO_SUCH_VARIABLE"));
    let of_variable = account(set, None).unwrap();
    let package = file("package", concat!(" ", env!("CARGO_PKG_NAME"), "\n"));
    let other = file("other", "other");
    assert_eq!(account(None, Some(&package)), Ok(of_variable.clone()));
    assert_eq!(account(set, Some(&other)), Ok(of_variable.clone()));
    assert_eq!(account(unset, Some(&package)), Ok(of_variable));

    let error = account(unset, None).unwrap_err();
    assert!(
        error.contains("variable that client_secret_env names is not set"),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
    let error = account(None, None).unwrap_err();
    assert!(
        error.contains("client_secret_file") && error.contains("client_secret_env"),
        "{error}"
    );
    let error = account(None, Some(&file("empty", " \n"))).unwrap_err();
    assert!(error.contains("holds no client secret"), "{error}");
    let error = account(None, Some(&directory.path().join("missing"))).unwrap_err();
    assert!(
        error.contains("cannot be read") && error.contains("missing"),
        "{error}"
    );
}

#[test]
fn debug_shows_no_secret_and_no_address_of_redis_or_store() {
    let text = "[redis]\nurl = 'redis://u:hunter2@h'\n[queue]\nredis_url = 'redis://u:hunter2@q'\n\
                [store]\nurl = 's3://hunter2'\n[graph]\ntenant = 'a'\nclient_id = 'b'\n";
    let mut config = read(text).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    std::fs::write(&path, "hunter2").unwrap();
    config.graph.client_secret_file = Some(path.clone());
    config.sendgrid.api_key_file = Some(path);
    let shown = format!(
        "{config:?}{:?}{:?}{:?}",
        config.graph.account().unwrap(),
        config.sendgrid.account().unwrap(),
        config.rate_limiter(),
    );
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_mailbox_is_held_to_its_own_limits_else_to_those_of_all_else_to_the_modules() {
    let text = "[limits]\nrate_limit_per_minute = 7\n[mailbox.'News@Example.com']\nrate_limit_recipients_per_day = 100\n";
    let config = read(text).unwrap();
    let limits = config.limits_of(&Mailbox::new("news@example.com"));
    assert_eq!(
        (limits.per_minute, limits.recipients_per_day),
        (some(7), some(100))
    );
    let limits = config.limits_of(&Mailbox::new("other@example.com"));
    assert_eq!(limits, config.default_limits());
    assert_eq!((limits.per_minute, limits.recipients_per_day), (some(7), None));
}

#[test]
fn a_reservation_outlasts_the_longest_send_through_graph() {
    assert_eq!(MailConfig::default().lease(), Duration::from_secs(40));
    let text = "[graph]\ntimeout_s = 5\n[sendgrid]\ntimeout_s = 900\n\
                [tenant.a]\nprovider = 'microsoft-graph'\ntenant = 'a'\nclient_id = 'b'\nclient_secret_env = 'C'\n\
                timeout_s = 50\n";
    assert_eq!(read(text).unwrap().lease(), Duration::from_mins(1));
    assert_eq!(
        read("[graph]\ntimeout_s = 3590\n").unwrap().lease(),
        Duration::from_hours(1)
    );
}

#[test]
fn the_queue_is_in_the_redis_of_the_budgets_unless_it_has_one_of_its_own() {
    let config = read("[redis]\nurl = 'redis://a'\n").unwrap();
    assert_eq!(config.queue_redis_url(), "redis://a");
    let config =
        read("[redis]\nurl = 'redis://a'\n[queue]\nredis_url = 'redis://b'\nretry_pause_s = 1\n").unwrap();
    assert_eq!(
        (config.redis.url(), config.queue_redis_url()),
        ("redis://a", "redis://b")
    );
    assert_eq!(config.queue.policy().first_pause, Duration::from_secs(1));
}
