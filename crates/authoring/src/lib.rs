//! Writing definitions without writing JSON: proposals of selectors, signals, lists and converters for
//! what an author chooses on a page, and the studio in which the author chooses it.

mod draft;
mod explore;
mod lists;
mod naming;
mod selectors;
mod signals;
mod studio;
#[cfg(test)]
mod tests;
mod values;

pub use self::{
    draft::{
        DraftError, FieldChange, FieldSource, KnownValues, NewField, NewList, PageKind, add_field,
        add_variable, dismiss, dismissed, edit_field, mark_page, move_field, new_definition,
        remove_dismissed, remove_field, remove_page,
    },
    lists::{ListProposal, propose_json_list, propose_list},
    naming::{label_of, label_of_name, name_of},
    selectors::{SelectorProposal, propose_selectors},
    signals::{ConditionProposal, KnownPage, describe, page_language, propose_conditions},
    studio::{
        Edit, ElementView, InspectionView, RunFrom, Studio, StudioError, StudioParts, StudioView,
        TraceSink, text_of,
    },
    values::{ValueProposal, propose_json_values, propose_values},
};
