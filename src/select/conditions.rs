//! `matchConditions`: all must come to `true`.

use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Container;
use crate::outcome::{Skip, SkipCause};
use crate::policy::expression::{Evaluator, Outcome};
use crate::policy::template::Fault;
use crate::policy::{Condition, Policy};

use super::{No, View, WorkloadFacts};

impl View<'_, '_> {
    pub(super) fn check_conditions(
        &self,
        policy: &Policy,
        conditions: &[Condition],
    ) -> Result<(), No> {
        if conditions.is_empty() {
            return Ok(());
        }
        let facts = WorkloadFacts {
            workload: self.workload,
            base: self.base,
            container: None,
            inventory: self.inventory,
        };
        match self.first_that_fails(policy, conditions, &facts) {
            Ok(None) => Ok(()),
            Ok(Some(failed)) => {
                let reason = format!("the condition `{}` does not hold", failed.name);
                let skip = Skip::because(SkipCause::Condition, reason).wanted_at(failed.at.clone());
                Err(No::Skip(Box::new(skip)))
            }
            Err(problem) => Err(No::Undecided(problem)),
        }
    }

    /// The first condition that does not hold.
    pub(super) fn first_that_fails<'c>(
        &self,
        policy: &Policy,
        conditions: &'c [Condition],
        facts: &WorkloadFacts<'_, '_>,
    ) -> Result<Option<&'c Condition>, Box<Diagnostic>> {
        let container = facts.container.and_then(Container::own_node);
        let evaluator = Evaluator::new(&policy.params, &policy.variables, facts)
            .with_memory(self.base.memory(policy, container));
        for condition in conditions {
            let undecided = |fault| Box::new(self.undecided_condition(policy, condition, fault));
            match evaluator
                .evaluate(&condition.expression)
                .map_err(undecided)?
            {
                Outcome::Value(Value::Bool(true)) => {}
                Outcome::Value(Value::Bool(false)) => return Ok(Some(condition)),
                Outcome::Value(_) | Outcome::Absent => {
                    let message = format!(
                        "the condition `{}` is neither true nor false",
                        condition.name
                    );
                    return Err(undecided(Fault::new(
                        Code::BadExpression,
                        message,
                        "make it a comparison",
                    )));
                }
            }
        }
        Ok(None)
    }

    fn undecided_condition(
        &self,
        policy: &Policy,
        condition: &Condition,
        fault: Fault,
    ) -> Diagnostic {
        let (at, what) = match fault.variable {
            Some(at) => (at, "this variable"),
            None => (condition.at.clone(), "in this condition"),
        };
        let problem = Diagnostic::error(fault.code, fault.message)
            .at(policy.text.place(at), what)
            .at(self.workload.own_place(), "for this workload");
        match fault.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}
