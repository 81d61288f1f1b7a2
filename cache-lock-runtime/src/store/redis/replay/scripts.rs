//! The scripts alone: the requests are the model's own.

use lock_model::{Action, Config, Kinds, Request, Step, trace};

use super::*;
use crate::protocol::messages::RequestKind;

#[test]
fn the_scripts_do_what_the_model_does() {
    let config = Config {
        managers: 3,
        waiters: 6,
        faults: 6,
        kinds: Kinds { flush: true, ..Kinds::ALL },
        cancels: 4,
        renewals: 4,
        yields: 2,
        block: 6,
        pace: 6,
        mixed: true,
        times: TIMES,
        ..Config::default()
    };
    let sources: Vec<_> = (0..config.managers).map(|_| Arc::new(TokenSource::new())).collect();
    let mut server = ReplayServer::start(&sources, true);
    server.scale = 1000;
    let mut served = 0;
    for seed in 0..40 {
        let config = Config { foreign: seed % 4 == 0, ..config.clone() };
        let mut tokens = Tokens::new();
        server.begin(&config);
        let mut walk = trace(config.clone(), seed, 400);
        let mut before = walk.view();
        for (number, step) in walk.by_ref().enumerate() {
            let done = replay(&mut server, &sources, &mut tokens, &before, &step);
            served += u32::from(step.served.is_some());
            if let Err(difference) = done {
                panic!("seed {seed}, step {number}, {:?}: {difference}\n{step:?}", step.action);
            }
            before = step.after;
        }
    }
    assert!(served > 1000, "only {served} requests");
}

fn replay(
    server: &mut ReplayServer,
    sources: &[Arc<TokenSource>],
    tokens: &mut Tokens,
    before: &View,
    step: &Step,
) -> Result<(), String> {
    match step.action {
        Action::Tick | Action::SlowTick | Action::LagTick(_) => server.tick(),
        Action::Flush => server.flush(),
        Action::ForeignEnds => server.delete_lock(),
        Action::Reconnect(id) => server.open_inbox(usize::from(id)),
        Action::DropInbox(id) => server.close_inbox(usize::from(id)),
        _ => {}
    }
    if let Some(served) = &step.served {
        let scale = server.scale;
        let many = |block: u16| u32::from(if block > 1 { block * scale } else { 1 });
        let mut real = |token: Token| {
            let sources = &sources[usize::from(token.manager)];
            tokens.entry(token).or_insert_with(|| sources.next()).clone()
        };
        let asked = match served.request {
            Request::Acquire { token, expire, block, wait } => {
                let listed = before.waiting.contains(&token);
                let request = AcquireRequest {
                    key: server.key.clone(),
                    token: real(token),
                    kind: if listed { RequestKind::Again } else { RequestKind::New },
                    expire: TICK * u32::from(expire),
                    block: many(block),
                    wait: true,
                };
                Asked::Acquire { request, heard: wait }
            }
            Request::Pass { token, new, expire, block, wait, yields } => {
                let (old, new, expire) = (real(token), real(new), TICK * u32::from(expire));
                let old =
                    ReleaseRequest { yields, ..ReleaseRequest::new(old, expire, Instant::FAR) };
                let request = AcquireRequest {
                    key: server.key.clone(),
                    token: new,
                    kind: RequestKind::Pass(old),
                    expire,
                    block: many(block),
                    wait: true,
                };
                Asked::Acquire { request, heard: wait }
            }
            Request::Extend { token, expire } => Asked::Extension(Extension {
                key: server.key.clone(),
                token: real(token),
                expire: TICK * u32::from(expire),
            }),
            Request::Release { token, .. } | Request::Forget { token } => {
                let yields = matches!(served.request, Request::Release { yields: true, .. });
                let (token, expire) = (real(token), TICK * u32::from(TIMES.expire));
                Asked::Release(ReleaseRequest { token, expire, lasts: Instant::FAR, yields })
            }
        };
        let (value, pushes) = server.serve(&asked)?;
        server.check_answer(&asked, &value, served)?;
        server.check_pushes(&pushes, served, &step.after, tokens)?;
    }
    server.check_records(&step.after, tokens)
}
