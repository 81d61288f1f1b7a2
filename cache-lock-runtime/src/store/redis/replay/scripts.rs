//! The scripts alone: the requests are the model's own.

use lock_model::{Action, Config, Kinds, Request, Step, trace};

use super::*;

#[test]
fn the_scripts_do_what_the_model_does() {
    let config = Config {
        managers: 3,
        waiters: 6,
        faults: 6,
        kinds: Kinds { flush: true, ..Kinds::ALL },
        cancels: 4,
        renewals: 4,
        pauses: 2,
        block: 6,
        pace: 6,
        mixed: true,
        times: TIMES,
        ..Config::default()
    };
    let owners: Vec<_> = (0..config.managers).map(|_| Arc::new(Owners::new())).collect();
    let mut server = Server::start(&owners, true);
    server.scale = 1000;
    let mut served = 0;
    for seed in 0..40 {
        let config = Config { foreign: seed % 4 == 0, ..config.clone() };
        let mut tokens = Tokens::new();
        server.begin(&config);
        let mut walk = trace(config.clone(), seed, 400);
        let mut before = walk.view();
        for (number, step) in walk.by_ref().enumerate() {
            let done = replay(&mut server, &owners, &mut tokens, &before, &step);
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
    server: &mut Server,
    owners: &[Arc<Owners>],
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
            let owners = &owners[usize::from(token.manager)];
            tokens.entry(token).or_insert_with(|| owners.next()).clone()
        };
        let asked = match served.request {
            Request::Acquire { token, expire, block, wait } => {
                let question = Question {
                    key: server.key.clone(),
                    token: real(token),
                    instead_of: None,
                    lasts: Moment::FAR,
                    aside: false,
                    expire: TICK * u32::from(expire),
                    block: many(block),
                    wait: true,
                    listed: before.waiting.contains(&token),
                };
                Asked::Question { question, heard: wait }
            }
            Request::Pass { token, new, expire, block, wait, aside } => {
                let question = Question {
                    key: server.key.clone(),
                    token: real(new),
                    instead_of: Some(real(token)),
                    lasts: Moment::FAR,
                    aside,
                    expire: TICK * u32::from(expire),
                    block: many(block),
                    wait: true,
                    listed: false,
                };
                Asked::Question { question, heard: wait }
            }
            Request::Extend { token, expire } => Asked::Extension(Extension {
                key: server.key.clone(),
                token: real(token),
                expire: TICK * u32::from(expire),
            }),
            Request::Release { token, .. } | Request::Forget { token } => {
                let aside = matches!(served.request, Request::Release { aside: true, .. });
                let (token, expire) = (real(token), TICK * u32::from(TIMES.expire));
                Asked::Release(Ended { token, expire, lasts: Moment::FAR, aside })
            }
        };
        let (value, pushes) = server.serve(&asked)?;
        server.check_answer(&asked, &value, served)?;
        server.check_pushes(&pushes, served, &step.after, tokens)?;
    }
    server.check_records(&step.after, tokens)
}
