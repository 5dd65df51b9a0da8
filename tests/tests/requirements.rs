//! Rules, cases and citations agree.

use kafka_share_conformance::cases;
use kafka_share_tests::requirements::{Rule, citations, is_well_formed, load, not_done};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn rules_are_well_formed_and_unique() {
    let rules = load();
    assert!(rules.len() >= 300, "{} rules", rules.len());
    let mut seen = BTreeSet::new();
    for rule in &rules {
        let Rule { id, must, level, kip, since, source } = rule;
        assert!(is_well_formed(id), "{id:?} is no well-formed id");
        assert!(seen.insert(id.clone()), "{id} stands twice");
        assert!(must.len() > 20 && must.ends_with('.'), "{id}: {must:?} is no sentence");
        assert!(matches!(level.as_str(), "MUST" | "SHOULD"), "{id}: level {level:?}");
        assert!(*kip > 0 && !source.is_empty(), "{id} has no source");
        let release = since.split_once('.').is_some_and(|(a, b)| a.parse::<u8>().is_ok() && b.parse::<u8>().is_ok());
        assert!(release || since == "draft", "{id}: since {since:?}");
    }
}

#[test]
fn ids_have_one_form() {
    for good in ["SHARE-ACK-01", "TXN-TV2-03", "PRODUCE-123"] {
        assert!(is_well_formed(good), "{good}");
    }
    for bad in ["", "SHARE", "SHARE-1", "share-ack-01", "SHARE--01", "SHARE-ACK-0x", "-01", "SHARE ACK-01"] {
        assert!(!is_well_formed(bad), "{bad}");
    }
}

#[test]
fn every_case_checks_rules_that_exist() {
    let rules: BTreeMap<String, Rule> = load().into_iter().map(|r| (r.id.clone(), r)).collect();
    for case in cases::all() {
        assert!(!case.ids.is_empty(), "{} checks no rule", case.name);
        for id in case.ids {
            assert!(rules.contains_key(*id), "{} names {id}, which is no rule", case.name);
        }
        assert_eq!(rules[case.ids[0]].kip, case.kip, "KIP of {} and of {}", case.name, case.ids[0]);
    }
}

#[test]
fn every_citation_is_of_a_rule_that_exists() {
    let rules: BTreeSet<String> = load().into_iter().map(|r| r.id).collect();
    for (id, place) in citations() {
        assert!(rules.contains(&id), "{place} cites {id}, which is no rule");
    }
}

#[test]
fn every_rule_is_cited_or_in_the_table_of_what_is_not_done() {
    let cases = cases::all();
    let mut cited: BTreeSet<String> = cases.iter().flat_map(|c| c.ids).map(|id| (*id).to_owned()).collect();
    cited.extend(citations().into_iter().map(|(id, _)| id));
    let rules: BTreeSet<String> = load().into_iter().map(|r| r.id).collect();
    let mut left = BTreeSet::new();
    for (id, why) in not_done() {
        assert!(rules.contains(&id), "NOT-DONE.md names {id}, which is no rule");
        assert!(!cited.contains(&id), "{id} is cited: its row in NOT-DONE.md is out of date");
        assert!(why.len() > 15, "NOT-DONE.md gives no reason for {id}");
        assert!(left.insert(id.clone()), "{id} stands twice in NOT-DONE.md");
    }
    let silent: Vec<&String> = rules.iter().filter(|id| !cited.contains(*id) && !left.contains(*id)).collect();
    assert!(silent.is_empty(), "no case and no comment cites {silent:?}, and NOT-DONE.md does not say why");
}
