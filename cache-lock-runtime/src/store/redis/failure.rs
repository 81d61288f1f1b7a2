//! What a failed call says about the server, and about the fate of the request.

use redis::{ErrorKind, RedisError};

use crate::error::{BackendError, BackendErrorKind};

/// Whether a request that failed may have been, or may yet be, carried out.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server answered: it was not.
    Refused(BackendError),
    /// The server answered: its script was aborted, and may have taken steps that it has not undone.
    Aborted(BackendError),
    /// An answer leaves it open: that of a proxy whose server is slow. It may be carried out at any
    /// later time.
    Unknown(BackendError),
    /// The connection is over: it may have been.
    Closed(BackendError),
    /// There is no answer yet: everything is open.
    Overdue(BackendError),
}

impl Failure {
    pub(super) fn into_error(self) -> BackendError {
        match self {
            Self::Refused(error)
            | Self::Aborted(error)
            | Self::Unknown(error)
            | Self::Closed(error)
            | Self::Overdue(error) => error,
        }
    }

    pub(super) fn overdue() -> Self {
        Self::Overdue(BackendError::new(BackendErrorKind::Timeout, "the server did not answer"))
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        if error.kind() == ErrorKind::Parse {
            // The server has spoken the protocol before, when the connection was set up.
            let message = format!("the server's answer cannot be read: {error}");
            let error = BackendError::new(BackendErrorKind::Unavailable, message);
            return Self::Closed(error);
        }
        // The setup of a connection fails with what the server said to it, and closes it too.
        if error.is_io_error() || error.is_unrecoverable_error() {
            return Self::Closed(describe(error));
        }
        let (code, detail) = said(&error);
        if !comes_first(&code, &detail) {
            let message =
                format!("the answer leaves open whether the request was carried out: {error}");
            let error =
                BackendError::new(BackendErrorKind::Unavailable, message).with_source(error);
            return Self::Unknown(error);
        }
        let aborted = is_aborted(&error);
        let error = describe(error);
        if aborted { Self::Aborted(error) } else { Self::Refused(error) }
    }
}

/// The error comes before the request is carried out, or from a script of ours that has undone its
/// steps. All other errors leave that open: a proxy says what it likes when its server is slow.
fn comes_first(code: &str, detail: &str) -> bool {
    match code {
        // The server looks at the connection, the user and its own state before it runs a command.
        "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" | "LOADING" | "READONLY" | "OOM"
        | "MISCONF" | "BUSY" | "NOREPLICAS" | "MASTERDOWN" | "NOSCRIPT" | "NOPROTO" => true,
        // So does a cluster with the slot.
        "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK" | "CROSSSLOT" => true,
        // Our scripts return it after they have undone their steps; a plain command changes nothing.
        "WRONGTYPE" | "NOTIME" => true,
        "ERR" => {
            let detail = detail.to_ascii_lowercase();
            FIRST_WITHOUT_CODE.iter().any(|first| detail.starts_with(first))
        }
        _ => false,
    }
}

/// How errors begin that come before the request is carried out, and have no code of their own.
const FIRST_WITHOUT_CODE: [&str; 9] = [
    "unknown command",
    "unknown subcommand",
    "unsupported command",
    "wrong number of arguments",
    "max number of clients reached",
    "unknown redis command called from",
    "this redis command is not allowed from script",
    "the user executing the script can't",
    "acl failure in script",
];

/// What is wrong where scripts may not call TIME, and what to do.
pub(super) const NO_TIME: &str = "scripts may not call TIME, which fencing numbers come from; give the \
     user the rule `+time`, or, where no user may call it from a script, as on some hosted servers, use \
     another server";

/// The server has no command of this name.
pub(super) fn is_unknown_command(error: &RedisError) -> bool {
    error.code() == Some("ERR")
        && error
            .detail()
            .is_some_and(|said| said.to_ascii_lowercase().starts_with("unknown command"))
}

/// A command that the script calls, and does not look after, ended it: it has undone nothing.
fn is_aborted(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    detail.starts_with(RAISED_BEFORE_7) || detail.contains(" on @user_script:")
}

const RAISED_BEFORE_7: &str = "Error running script (call to ";

/// The code and the words of an error. Before version 7, the server puts the place in the script
/// before an error that comes before the script's command is run: `@user_script: 50: -READONLY ..`,
/// and `ERR Error running script (call to f_..): @user_script:50: ..` if the script is aborted by it.
fn said(error: &RedisError) -> (String, String) {
    let code = error.code().unwrap_or_default();
    let detail = error.detail().unwrap_or_default();
    let is_raised = detail.starts_with(RAISED_BEFORE_7);
    if !is_raised && !code.starts_with(PLACE) {
        return (code.to_owned(), detail.to_owned());
    }
    let text = if is_raised { detail.to_owned() } else { format!("{code} {detail}") };
    let inner = strip_places(&text);
    match inner.split_once(' ') {
        Some((code, detail)) if is_code(code) => (code.to_owned(), detail.to_owned()),
        _ if is_code(inner) => (inner.to_owned(), String::new()),
        _ => ("ERR".to_owned(), inner.to_owned()),
    }
}

/// Begins the part of an error that repeats what was sent: of a script, pages of Lua.
const ARGUMENTS: &str = ", with args beginning with";

const PLACE: &str = "@user_script:";

/// What follows the last place in a script.
fn strip_places(text: &str) -> &str {
    let inner = text.rsplit_once(PLACE).map_or(text, |(_, rest)| rest).trim_start();
    let rest = inner.trim_start_matches(|c: char| c.is_ascii_digit());
    let inner = rest.strip_prefix(": ").unwrap_or(inner);
    inner.strip_prefix('-').unwrap_or(inner)
}

fn is_code(word: &str) -> bool {
    word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The error of ours for one of the driver's. The driver's goes with it where it has other words.
pub(super) fn describe(error: RedisError) -> BackendError {
    let (_, detail) = said(&error);
    let described = explain(&error);
    let is_quoted = !detail.is_empty() && described.to_string().contains(&detail);
    if is_quoted || detail.contains(ARGUMENTS) {
        return described;
    }
    described.with_source(error)
}

fn explain(error: &RedisError) -> BackendError {
    use BackendErrorKind::{
        Configuration, Denied, ForeignRecord, Loading, OutOfMemory, ReadOnly, Server, Unavailable,
        Unreachable,
    };
    #[cfg(feature = "tls")]
    if let Some(refusal) = super::tls::refusal(error) {
        let message = format!("no TLS connection to the server can be made: {refusal}");
        return BackendError::new(Configuration, message);
    }
    let (code, detail) = said(error);
    let detail = detail.split(ARGUMENTS).next().unwrap_or_default();
    let said = |what: &str| {
        if detail.is_empty() { what.to_owned() } else { format!("{what} ({detail})") }
    };
    let (kind, message) = match (error.kind(), &*code) {
        (_, "LOADING") => (Loading, "the server is loading its data".to_owned()),
        (_, "READONLY") => (ReadOnly, "the server is a replica and takes no writes".to_owned()),
        (_, "NOREPLICAS" | "BUSY" | "MASTERDOWN" | "TRYAGAIN" | "CLUSTERDOWN" | "MISCONF") => {
            (Unavailable, said("the server takes no writes for now"))
        }
        _ if detail.starts_with("max number of clients reached") => {
            (Unavailable, "the server takes no more connections for now".to_owned())
        }
        (_, "OOM") => (OutOfMemory, said("the server is out of memory")),
        (_, "WRONGTYPE") => (
            ForeignRecord,
            "the record under this key, or under the key of its fence, is not a lock: \
             something else uses the same name"
                .to_owned(),
        ),
        (ErrorKind::AuthenticationFailed, _) => {
            (Denied, "the server does not allow it (the user or the password is wrong)".to_owned())
        }
        (_, "WRONGPASS" | "NOPERM") => (Denied, said("the server does not allow it")),
        (_, "NOAUTH") => (Denied, NO_PASSWORD.to_owned()),
        _ if is_of_select(error) => select(detail),
        // Our scripts put the code before what the server says of TIME.
        (_, "NOTIME") => {
            let why = detail.strip_prefix("ERR ").unwrap_or(detail);
            (Denied, format!("the server does not allow it: {} ({})", NO_TIME, strip_places(why)))
        }
        _ if ["This Redis command is not allowed", "Unknown Redis command called"]
            .iter()
            .any(|words| detail.starts_with(words)) =>
        {
            (Denied, said("the server does not let scripts run a command that locks need"))
        }
        // What a script may not do has no code of its own, and other words from version 7.2 on.
        _ if detail.starts_with("The user executing the script can't")
            || detail.starts_with("ACL failure in script") =>
        {
            (Denied, said("the server does not allow it"))
        }
        (ErrorKind::Io, _) => (Unreachable, format!("the server is unreachable: {error}")),
        (ErrorKind::Parse, _) => {
            (Configuration, "what answers there is no Redis server".to_owned())
        }
        // The name is not in the DNS for now, or its answer is empty.
        (ErrorKind::InvalidClientConfig, _) if error.to_string().contains("No address found") => {
            (Unreachable, "the server's name leads to no address".to_owned())
        }
        (ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported, _) => {
            (Configuration, error.to_string())
        }
        _ if is_unknown_command(error) => {
            (Server, said("the server does not know a command that locks need"))
        }
        _ => (Server, error.to_string()),
    };
    BackendError::new(kind, message)
}

/// The likely mistake is a URL with the colon forgotten: what stands there is a user then, without a
/// password, and is not sent.
const NO_PASSWORD: &str = "the server asks for a password: write it into the URL as \
     `redis://:PASSWORD@host`, with the colon, or as `redis://USER:PASSWORD@host`";

/// The driver has chosen the URL's database in vain.
fn is_of_select(error: &RedisError) -> bool {
    error.to_string().starts_with("Redis server refused to switch database")
}

fn select(detail: &str) -> (BackendErrorKind, String) {
    if detail.contains("no permissions") || detail.contains("can't run this command") {
        let message =
            format!("the server does not allow it ({detail}); give the user the rule `+select`");
        (BackendErrorKind::Denied, message)
    } else {
        let message = format!("the server does not have the database of the URL ({detail})");
        (BackendErrorKind::Configuration, message)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;
    use crate::error::{LockError, says_nothing_twice};

    fn failure(said: &str) -> Failure {
        let answer = redis::parse_redis_value(format!("-{said}\r\n").as_bytes());
        let error = answer.and_then(redis::Value::extract_error).expect_err("it is an error");
        Failure::from(error)
    }

    /// The kind of what comes before the request is carried out.
    fn refused(said: &str) -> BackendErrorKind {
        match failure(said) {
            Failure::Refused(error) => error.kind(),
            other => panic!("{said}: {other:?}"),
        }
    }

    #[test]
    fn only_what_comes_before_execution_is_refused() {
        use BackendErrorKind::{
            Denied, ForeignRecord, Loading, OutOfMemory, ReadOnly, Server, Unavailable,
        };
        for (said, kind) in [
            ("NOAUTH Authentication required.", Denied),
            ("WRONGPASS invalid username-password pair or user is disabled.", Denied),
            ("NOPERM this user has no permissions to run the 'evalsha' command", Denied),
            ("LOADING Redis is loading the dataset in memory", Loading),
            ("READONLY You can't write against a read only replica.", ReadOnly),
            ("OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
            ("MISCONF Redis is configured to save RDB snapshots", Unavailable),
            ("BUSY Redis is busy running a script.", Unavailable),
            ("NOREPLICAS Not enough good replicas to write.", Unavailable),
            ("MASTERDOWN Connection with MASTER is down", Unavailable),
            ("CLUSTERDOWN The cluster is down", Unavailable),
            ("TRYAGAIN Multiple keys request during rehashing of slot", Unavailable),
            ("ERR max number of clients reached", Unavailable),
            ("WRONGTYPE the fence is not a number below 2^53", ForeignRecord),
            ("ERR unknown command 'EVALSHA', with args beginning with: ", Server),
            ("ERR wrong number of arguments for 'evalsha' command", Server),
            ("ERR ACL failure in script: User app has no permissions", Denied),
            ("ERR This Redis command is not allowed from script", Denied),
            ("ERR Unknown Redis command called from script script: 0123", Denied),
            ("NOTIME ERR This Redis command is not allowed from script", Denied),
            ("NOTIME TIME is switched off here", Denied),
        ] {
            assert_eq!(refused(said), kind, "{said}");
        }
        for said in [
            "ERR Connection timed out",
            "ERR upstream failure",
            "upstream failure",
            "no upstream host",
            "ERR",
        ] {
            let failure = failure(said);
            assert!(matches!(failure, Failure::Unknown(_)), "{said}: {failure:?}");
            assert!(failure.into_error().is_transient(), "{said}");
        }
    }

    #[test]
    fn garbage_after_the_setup_ends_the_connection_and_passes() {
        let error = redis::parse_redis_value(b"?\r\n").expect_err("it is garbage");
        let failure = Failure::from(error);
        assert!(matches!(failure, Failure::Closed(_)), "{failure:?}");
        assert!(failure.into_error().is_transient());
    }

    /// Redis 6.2.
    #[test]
    fn the_place_in_a_script_is_left_out() {
        use BackendErrorKind::{Denied, OutOfMemory, ReadOnly};
        let denied = "The user executing the script can't run this command or subcommand";
        for (said, kind) in [
            ("-READONLY You can't write against a read only replica.", ReadOnly),
            ("-OOM command not allowed when used memory > 'maxmemory'.", OutOfMemory),
            (denied, Denied),
        ] {
            for place in ["@user_script: 50: ", "@user_script:50: ", "@user_script: "] {
                assert_eq!(refused(&format!("{place}{said}")), kind, "{place}{said}");
            }
            let raised = "ERR Error running script (call to f_0123): ";
            for place in ["@user_script:50: @user_script: 50: ", "@user_script:50: "] {
                let failure = failure(&format!("{raised}{place}{said}"));
                assert!(matches!(failure, Failure::Aborted(_)), "{said}: {failure:?}");
                assert_eq!(failure.into_error().kind(), kind, "{said}");
            }
        }
    }

    #[test]
    fn scripts_without_time_say_what_to_do() {
        for said in [
            "ERR This Redis command is not allowed from script",
            "@user_script: 50: This Redis command is not allowed from script",
        ] {
            let error = failure(&format!("NOTIME {said}")).into_error().to_string();
            assert!(error.ends_with("(This Redis command is not allowed from script)"), "{error}");
            assert!(error.contains(NO_TIME), "{error}");
        }
    }

    #[test]
    fn a_script_that_is_aborted_has_undone_nothing() {
        let said = "NOPERM User app has no permissions to run the 'zrem' command \
                    script: 0123, on @user_script:30.";
        let failure = failure(said);
        assert!(matches!(failure, Failure::Aborted(_)), "{failure:?}");
        assert_eq!(failure.into_error().kind(), BackendErrorKind::Denied);
    }
    /// What the driver makes of a server's answer to SELECT.
    fn of_select(said: &str) -> BackendError {
        let kind = redis::ServerErrorKind::ResponseError.into();
        describe((kind, "Redis server refused to switch database", said.to_owned()).into())
    }

    #[test]
    fn a_database_that_cannot_be_chosen_says_why() {
        for said in [
            "User app has no permissions to run the 'select' command",
            "this user has no permissions to run the 'select' command or its subcommand",
        ] {
            let error = of_select(said);
            assert_eq!(error.kind(), BackendErrorKind::Denied, "{error}");
            assert!(error.to_string().contains("`+select`"), "{error}");
        }
        let error = of_select("DB index is out of range");
        assert_eq!(error.kind(), BackendErrorKind::Configuration, "{error}");
    }

    #[test]
    fn a_missing_password_says_how_it_is_written() {
        let error = failure("NOAUTH HELLO must be called with the client already authenticated");
        assert!(error.into_error().to_string().contains("`redis://:PASSWORD@host`"));
    }

    /// The server repeats what it was sent, and our scripts are long.
    #[test]
    fn no_script_is_shown() {
        for said in [
            "ERR unknown command 'EVAL', with args beginning with: 'local function drop()' '3'",
            "ERR unknown command `EVALSHA`, with args beginning with: `local function drop()`, `3`, ",
        ] {
            let error = failure(said).into_error();
            let shown = format!("{error} {error:?} {:?}", error.source());
            assert!(shown.contains("unknown command") && !shown.contains("local"), "{shown}");
        }
    }

    #[test]
    fn no_text_of_a_chain_is_said_twice() {
        let io = |kind, words: &str| RedisError::from(std::io::Error::new(kind, words));
        let answers = [
            "NOAUTH Authentication required.",
            "WRONGPASS invalid username-password pair or user is disabled.",
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "LOADING Redis is loading the dataset in memory",
            "READONLY You can't write against a read only replica.",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "MISCONF Redis is configured to save RDB snapshots",
            "WRONGTYPE the fence is not a number below 2^53",
            "NOTIME ERR This Redis command is not allowed from script",
            "ERR max number of clients reached",
            "ERR unknown command 'EVAL', with args beginning with: 'local'",
            "ERR upstream failure",
            "LOADING",
        ];
        let mut errors: Vec<_> = answers.map(|said| failure(said).into_error()).into();
        errors.push(describe(io(std::io::ErrorKind::ConnectionRefused, "Connection refused")));
        errors.push(describe(io(std::io::ErrorKind::BrokenPipe, "Broken pipe")));
        errors.push(describe((ErrorKind::AuthenticationFailed, "Password failed").into()));
        errors.push(describe(redis::parse_redis_value(b"?\r\n").expect_err("it is garbage")));
        errors.push(of_select("DB index is out of range"));
        for error in errors {
            says_nothing_twice(&error);
            says_nothing_twice(&LockError::connect("redis://127.0.0.1:6379", error));
        }
    }
}
