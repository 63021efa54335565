//! Each message is accounted for: sent once, failed, or for a person to decide.

use std::collections::{BTreeMap, HashMap};

use mailrl_mailer::MessageState;

use super::{Books, Imbalance};

pub fn check(books: &Books) -> Vec<Imbalance> {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for accepted in &books.accepted {
        *times.entry(&accepted.id).or_default() += 1;
    }
    let mut wrong: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (id, state) in &books.messages {
        let times = times.remove(id.as_str()).unwrap_or(0);
        if let Some(what) = verdict(*state, times) {
            wrong.entry(what).or_default().push(id.clone());
        }
    }
    if !times.is_empty() {
        let strangers = times.into_keys().map(str::to_owned).collect();
        wrong.insert("Graph took what nobody put in", strangers);
    }
    let imbalance = |(what, ids): (&str, Vec<String>)| Imbalance {
        what: what.to_owned(),
        ids,
    };
    wrong.into_iter().map(imbalance).collect()
}

fn verdict(state: Option<MessageState>, times: usize) -> Option<&'static str> {
    use MessageState::{Failed, Pending, Scheduled, Sending, Sent, Unknown};
    match (state, times) {
        (_, 2..) => Some("Graph took it more than once"),
        (Some(Sent), 0) => Some("SENT, but Graph has not got it"),
        (Some(Failed), 1) => Some("FAILED, but Graph has got it"),
        (Some(Sent), 1) | (Some(Failed), 0) | (Some(Unknown), _) => None,
        (Some(Pending | Scheduled | Sending), 1) => Some("Graph has got it, and it is still to be sent"),
        (Some(Pending | Scheduled | Sending), _) => Some("not at its end when it was waited for long enough"),
        (None, _) => Some("the queue does not know it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::books::Accepted;

    fn found(messages: &[(&str, Option<MessageState>)], accepted: &[&str]) -> Vec<Imbalance> {
        let books = Books {
            messages: messages
                .iter()
                .map(|(id, state)| ((*id).to_owned(), *state))
                .collect(),
            accepted: accepted
                .iter()
                .map(|id| Accepted {
                    id: (*id).to_owned(),
                    mailbox: "a@example.com".into(),
                    at: 0,
                })
                .collect(),
            ..Books::default()
        };
        check(&books)
    }

    fn imbalance(what: &str, id: &str) -> Vec<Imbalance> {
        vec![Imbalance {
            what: what.to_owned(),
            ids: vec![id.to_owned()],
        }]
    }

    #[test]
    fn sent_once_failed_or_for_a_person_to_decide_balances() {
        let messages = [
            ("a", Some(MessageState::Sent)),
            ("b", Some(MessageState::Failed)),
            ("c", Some(MessageState::Unknown)),
            ("d", Some(MessageState::Unknown)),
        ];
        assert_eq!(found(&messages, &["a", "c"]), []);
    }

    #[test]
    fn what_does_not_balance_is_told_with_the_message() {
        let sent = Some(MessageState::Sent);
        for (state, accepted, what) in [
            (sent, &["m", "m"][..], "Graph took it more than once"),
            (
                Some(MessageState::Unknown),
                &["m", "m"],
                "Graph took it more than once",
            ),
            (sent, &[], "SENT, but Graph has not got it"),
            (Some(MessageState::Failed), &["m"], "FAILED, but Graph has got it"),
            (
                Some(MessageState::Scheduled),
                &["m"],
                "Graph has got it, and it is still to be sent",
            ),
            (
                Some(MessageState::Pending),
                &[],
                "not at its end when it was waited for long enough",
            ),
            (None, &[], "the queue does not know it"),
        ] {
            assert_eq!(
                found(&[("m", state), ("n", sent)], &[accepted, &["n"]].concat()),
                imbalance(what, "m")
            );
        }
        assert_eq!(
            found(&[("n", sent)], &["n", "x"]),
            imbalance("Graph took what nobody put in", "x")
        );
    }
}
