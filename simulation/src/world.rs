//! The world around the decision: mails become due, senders take them up, Graph answers.

use std::ops::RangeInclusive;
use std::time::Duration;

use mailrl_core::{BadState, Config, Request, Verdict, Wish, commit, pause, release, reserve};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::events::{Event, Events, Sending};
use crate::graph::Graph;
use crate::mail::{Group, Mail, State, mails, ms};
use crate::scenario::Scenario;
use crate::senders::Senders;
use crate::tally::Tally;

#[derive(Debug)]
pub(crate) struct World<'a> {
    pub scenario: &'a Scenario,
    pub events: Events,
    pub mails: Vec<Mail>,
    pub graph: Graph,
    pub tally: Tally,
    /// Mails that are not over.
    pub open: usize,
    /// Those of them that are urgent.
    urgent: usize,
    /// The mailbox's value.
    value: Vec<u8>,
    config: Config,
    senders: Senders,
    is_called_off: bool,
    rng: StdRng,
}

impl<'a> World<'a> {
    pub fn of(scenario: &'a Scenario) -> Self {
        let mut rng = StdRng::seed_from_u64(scenario.seed);
        let mails = mails(scenario, &mut rng);
        let start = scenario.starts_at_ms;
        let mut events = Events::default();
        for planned in &scenario.changes {
            events.plan(start + ms(planned.after), Event::Change(planned.change));
        }
        if let Some(after) = scenario.called_off_after {
            events.plan(start + ms(after), Event::CallOff);
        }
        for (mail, Mail { wanted_at, .. }) in mails.iter().enumerate() {
            events.plan(*wanted_at, Event::Due { mail });
        }
        if let Some(every) = scenario.urgent_every {
            events.plan(start + ms(every), Event::Urgent);
        }
        Self {
            scenario,
            events,
            graph: Graph::new(scenario.graph_limits),
            tally: Tally::default(),
            open: mails.len(),
            urgent: 0,
            mails,
            value: Vec::new(),
            config: scenario.config,
            senders: Senders::new(&scenario.pods),
            is_called_off: false,
            rng,
        }
    }

    pub fn happen(&mut self, event: Event, now: u64) -> Result<(), BadState> {
        let after_ms = self.after_ms(now);
        self.tally.pass(after_ms, &self.config);
        match event {
            Event::Due { mail } => {
                if self.mails[mail].state == State::Waiting {
                    self.senders.wait(mail);
                }
            }
            Event::AtGraph(sending) => self.reach_graph(sending, now)?,
            Event::Answered(sending) => {
                if self.scenario.commits
                    && commit(&mut self.value, self.config.kind, sending.id, now)?.is_some()
                {
                    self.tally.committed += 1;
                }
                self.senders.leave(sending.pod);
            }
            Event::Urgent => self.write_urgent(now),
            Event::Change(change) => {
                change.apply(&mut self.config);
                self.tally.pass(after_ms, &self.config);
            }
            Event::CallOff => self.call_off(),
        }
        while let Some((mail, pod)) = self.senders.next() {
            self.ask(mail, pod, now)?;
        }
        Ok(())
    }

    /// A sender takes up a mail.
    fn ask(&mut self, mail: usize, pod: usize, now: u64) -> Result<(), BadState> {
        let scenario = self.scenario;
        let Mail {
            group,
            recipients,
            state,
            ..
        } = self.mails[mail];
        if state != State::Waiting {
            return Ok(());
        }
        let request = Request {
            recipients,
            wish: Wish {
                concurrent: scenario.concurrent,
                ..Wish::default()
            },
            lane: group.lane(),
            lease_ms: u32::try_from(ms(scenario.lease)).unwrap_or(u32::MAX),
        };
        self.tally.called();
        match reserve(&mut self.value, &self.config, &request, now)?.verdict {
            Verdict::Allowed(id) => {
                self.senders.occupy(pod);
                let transit = self.draw(&scenario.transit);
                let sending = Sending { id, mail, pod };
                self.mails[mail].state = State::UnderWay;
                self.events.plan(now + transit, Event::AtGraph(sending));
            }
            Verdict::Denied {
                reason,
                retry_after_ms,
            } => {
                self.tally.denied(reason, retry_after_ms);
                self.put_off(mail, now + retry_after_ms);
            }
            Verdict::TooLarge { .. } => {
                self.tally.too_large += 1;
                self.end(mail, State::Dropped);
            }
        }
        Ok(())
    }

    fn reach_graph(&mut self, sending: Sending, now: u64) -> Result<(), BadState> {
        let scenario = self.scenario;
        let Sending { id, mail, pod } = sending;
        let after = Duration::from_millis(self.after_ms(now));
        let Mail {
            group,
            recipients,
            wanted_at,
            ..
        } = self.mails[mail];
        match self.graph.post(now, after, recipients) {
            Ok(()) => {
                self.tally.waited(group, id.ms - wanted_at);
                self.end(mail, State::Sent);
                let answer = self.draw(&scenario.answer);
                self.events.plan(now + answer, Event::Answered(sending));
            }
            Err(retry_after_ms) => {
                if release(&mut self.value, self.config.kind, id, now)?.is_some() {
                    self.tally.released += 1;
                }
                pause(&mut self.value, self.config.kind, retry_after_ms, now)?;
                self.senders.leave(pod);
                self.mails[mail].state = State::Waiting;
                self.put_off(mail, now + u64::from(retry_after_ms));
            }
        }
        Ok(())
    }

    /// The mail comes again at this time, or a little later.
    fn put_off(&mut self, mail: usize, until: u64) {
        if self.is_called_off && self.mails[mail].is_backlog {
            self.tally.called_off += 1;
            self.end(mail, State::Dropped);
            return;
        }
        let scenario = self.scenario;
        let spread = scenario.spread.draw(mail, scenario.seed, &mut self.rng);
        self.events.plan(until + spread, Event::Due { mail });
    }

    fn write_urgent(&mut self, now: u64) {
        if self.open == self.urgent {
            return;
        }
        self.mails.push(Mail::urgent(now));
        self.open += 1;
        self.urgent += 1;
        self.senders.wait(self.mails.len() - 1);
        if let Some(every) = self.scenario.urgent_every {
            self.events.plan(now + ms(every), Event::Urgent);
        }
    }

    fn call_off(&mut self) {
        self.is_called_off = true;
        for mail in 0..self.mails.len() {
            let Mail {
                is_backlog, state, ..
            } = self.mails[mail];
            if is_backlog && state == State::Waiting {
                self.tally.called_off += 1;
                self.end(mail, State::Dropped);
            }
        }
    }

    fn end(&mut self, mail: usize, state: State) {
        self.mails[mail].state = state;
        self.open -= 1;
        self.urgent -= usize::from(self.mails[mail].group == Group::Urgent);
    }

    /// In ms.
    fn draw(&mut self, range: &RangeInclusive<Duration>) -> u64 {
        self.rng.random_range(ms(*range.start())..=ms(*range.end()))
    }

    pub fn after_ms(&self, now: u64) -> u64 {
        now - self.scenario.starts_at_ms
    }
}
