//! The regions in which remote browsers run, and the region closest to a country.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WorkerRegion {
    #[serde(rename = "us-central")]
    UsCentral,
    #[serde(rename = "us-west")]
    UsWest,
    #[serde(rename = "us-east")]
    UsEast,
    #[serde(rename = "asia-south")]
    AsiaSouth,
    #[serde(rename = "europe-west")]
    EuropeWest,
}

/// Countries, mainly in Asia and Oceania, that are closer to `asia-south` than to `europe-west`.
const ASIA_SOUTH: &str = "AE AF AU BD BH BN BT CC CN CX FJ FM GU HK ID IN IO IR JP KG KH KI KP KR \
     KW KZ LA LK MH MM MN MO MP MV MY NC NF NP NR NU NZ OM PG PH PK PW QA SA SB SG TH TJ TK TL \
     TM TV TW UZ VN VU WF YE KM MG MU RE SC";
/// Countries closer to the west coast of North America.
const US_WEST: &str = "AS CK PF PN WS TO MX UM";
/// The remaining countries of the Americas.
const US_EAST: &str = "AG AI AR AW BB BL BM BO BQ BR BS CA CL CO CR CU CW DM DO EC FK GD GF GP GT \
     GY HN HT JM KN KY LC MF MQ MS NI PA PE PM PR PY SR SV SX TC TT UY VC VE VG VI BZ GS";

/// States, provinces and territories by ISO 3166-2 that are not served from the region of their
/// country.
const NORTH_AMERICA_WEST: &str = "US-AK US-AS US-AZ US-CA US-GU US-HI US-ID US-MP US-MT US-NV \
     US-OR US-UM US-UT US-WA CA-AB CA-BC CA-NT CA-YT";
const NORTH_AMERICA_EAST: &str = "US-CT US-DC US-DE US-FL US-GA US-MA US-MD US-ME US-NC US-NH \
     US-NJ US-NY US-PA US-PR US-RI US-SC US-VA US-VI US-VT US-WV";
const NORTH_AMERICA_CENTRAL: &str = "CA-MB CA-SK";

impl WorkerRegion {
    pub const ALL: &'static [Self] =
        &[Self::UsCentral, Self::UsWest, Self::UsEast, Self::AsiaSouth, Self::EuropeWest];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UsCentral => "us-central",
            Self::UsWest => "us-west",
            Self::UsEast => "us-east",
            Self::AsiaSouth => "asia-south",
            Self::EuropeWest => "europe-west",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|region| region.as_str() == name)
    }

    /// Returns how far another region is: 0 for the same, and less for one that is closer.
    #[must_use]
    pub const fn distance_to(self, other: Self) -> u8 {
        match (self, other) {
            (Self::UsCentral, Self::UsCentral)
            | (Self::UsWest, Self::UsWest)
            | (Self::UsEast, Self::UsEast)
            | (Self::AsiaSouth, Self::AsiaSouth)
            | (Self::EuropeWest, Self::EuropeWest) => 0,
            (Self::UsCentral, Self::UsWest | Self::UsEast)
            | (Self::UsWest | Self::UsEast, Self::UsCentral) => 1,
            (Self::UsWest, Self::UsEast) | (Self::UsEast, Self::UsWest) => 2,
            (Self::EuropeWest, Self::UsEast) | (Self::UsEast, Self::EuropeWest) => 3,
            (Self::EuropeWest, Self::UsCentral | Self::AsiaSouth)
            | (Self::UsCentral | Self::AsiaSouth, Self::EuropeWest) => 4,
            (Self::EuropeWest, Self::UsWest) | (Self::UsWest, Self::EuropeWest) => 5,
            (Self::AsiaSouth, Self::UsWest | Self::UsEast | Self::UsCentral)
            | (Self::UsWest | Self::UsEast | Self::UsCentral, Self::AsiaSouth) => 6,
        }
    }

    /// Returns the region closest to a country, given as an ISO 3166-1 alpha-2 code in upper case,
    /// or to one of its subdivisions, given as an ISO 3166-2 code.
    #[must_use]
    pub fn closest_to(country: &str, subdivision: Option<&str>) -> Self {
        let lists = |codes: &str, wanted| codes.split_whitespace().any(|code| code == wanted);
        let is_in = |codes| lists(codes, country);
        let is_part_in = |codes| subdivision.is_some_and(|wanted| lists(codes, wanted));
        if is_part_in(NORTH_AMERICA_WEST) {
            Self::UsWest
        } else if is_part_in(NORTH_AMERICA_EAST) {
            Self::UsEast
        } else if country == "US" || is_part_in(NORTH_AMERICA_CENTRAL) {
            Self::UsCentral
        } else if is_in(US_EAST) {
            Self::UsEast
        } else if is_in(US_WEST) {
            Self::UsWest
        } else if is_in(ASIA_SOUTH) {
            Self::AsiaSouth
        } else {
            Self::EuropeWest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_is_served_from_the_closest_region() {
        let table = [
            ("US", WorkerRegion::UsCentral),
            ("BR", WorkerRegion::UsEast),
            ("MX", WorkerRegion::UsWest),
            ("IN", WorkerRegion::AsiaSouth),
            ("DE", WorkerRegion::EuropeWest),
            ("ZA", WorkerRegion::EuropeWest),
        ];
        for (country, region) in table {
            assert_eq!(WorkerRegion::closest_to(country, None), region, "{country}");
        }
    }

    #[test]
    fn distances_are_the_same_in_both_directions() {
        for one in WorkerRegion::ALL {
            for other in WorkerRegion::ALL {
                assert_eq!(one.distance_to(*other), other.distance_to(*one));
                assert_eq!(one.distance_to(*other) == 0, one == other);
            }
        }
    }

    #[test]
    fn a_large_country_is_served_by_the_part_that_is_named() {
        let table = [
            ("US", "US-CA", WorkerRegion::UsWest),
            ("US", "US-NY", WorkerRegion::UsEast),
            ("US", "US-TX", WorkerRegion::UsCentral),
            ("CA", "CA-BC", WorkerRegion::UsWest),
            ("CA", "CA-MB", WorkerRegion::UsCentral),
            ("CA", "CA-ON", WorkerRegion::UsEast),
            ("DE", "DE-BY", WorkerRegion::EuropeWest),
        ];
        for (country, part, region) in table {
            assert_eq!(WorkerRegion::closest_to(country, Some(part)), region, "{part}");
        }
    }
}
