//! The loans of the site's readers, as the site writes them: digits, months and marks in Arabic.

use super::User;

const ROWS_PER_PAGE: usize = 3;

/// What was borrowed, until when, how often that was extended, and what is to be paid.
pub(super) struct Loan {
    pub(super) title: &'static str,
    pub(super) due: &'static str,
    pub(super) renewals: &'static str,
    pub(super) fee: &'static str,
}

/// A page of the list of loans.
pub(super) struct LoansPage {
    pub(super) loans: &'static [Loan],
    pub(super) next: Option<usize>,
}

const LOANS: [Loan; 7] = [
    loan("كليلة ودمنة", "٥ أكتوبر ٢٠٢٦", "٠", NO_FEE),
    loan("حي بن يقظان", "١٢ أكتوبر ٢٠٢٦", "١", NO_FEE),
    // Unicode CLDR has marks from right to left around amounts.
    loan("رحلة ابن بطوطة", "٢٣ نوفمبر ٢٠٢٦", "٢", "\u{200f}٧٫٢٥\u{a0}ر.س.\u{200f}"),
    loan("البخلاء", "١ ديسمبر ٢٠٢٦", "٠", "\u{200f}١٬٢٣٤٫٥٠\u{a0}ر.س.\u{200f}"),
    loan("المقدمة", "٣١ ديسمبر ٢٠٢٦", "١٢", NO_FEE),
    loan("ديوان المتنبي", "٩ يناير ٢٠٢٧", "٠", NO_FEE),
    loan("طوق الحمامة", "٢٨ فبراير ٢٠٢٧", "٣", "\u{200f}٠٫٥٠\u{a0}ر.س.\u{200f}"),
];
const NO_FEE: &str = "لا رسوم";

const fn loan(
    title: &'static str,
    due: &'static str,
    renewals: &'static str,
    fee: &'static str,
) -> Loan {
    Loan { title, due, renewals, fee }
}

/// Returns a page of the loans of a user; `None` if there is no such page. The first one is always
/// there.
pub(super) fn page(user: User, number: usize) -> Option<LoansPage> {
    let count = match user {
        User::Ok | User::LogoutMidway => LOANS.len(),
        User::OnePage => 2,
        User::NoLoans => 0,
    };
    let start = number.checked_sub(1)?.checked_mul(ROWS_PER_PAGE)?;
    let end = start.saturating_add(ROWS_PER_PAGE).min(count);
    let loans = LOANS.get(start..end).filter(|loans| number == 1 || !loans.is_empty())?;
    Some(LoansPage { loans, next: (end < count).then(|| number.saturating_add(1)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_list_end() {
        let rows =
            |user, number| page(user, number).map(|page: LoansPage| (page.loans.len(), page.next));
        let of_ok = [0, 1, 2, 3, 4, usize::MAX].map(|number| rows(User::Ok, number));
        let pages = [Some((3, Some(2))), Some((3, Some(3))), Some((1, None))];
        assert_eq!(of_ok, [None, pages[0], pages[1], pages[2], None, None]);
        assert_eq!([1, 2].map(|number| rows(User::OnePage, number)), [Some((2, None)), None]);
        assert_eq!([1, 2].map(|number| rows(User::NoLoans, number)), [Some((0, None)), None]);
    }
}
