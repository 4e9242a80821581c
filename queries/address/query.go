// Package address answers questions about addresses from one vintage: what was typed is read, compared and judged in
// one way, whichever the question. The same question has the same answer every time, to the last tie.
//
// A question passes through three packages:
//
//	Query ──> parse.Question     which words, numbers and signs were typed, and what they may be
//	      ──> search.Result      the candidates of the vintage, scored, in their order
//	      ──> Match, Suggestion  records, with what became of each part that was typed
//
// View, Near and Localities look up by id, by position and by name of a commune; they do not search.
package address

import (
	"errors"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/search"
	"lieudit/schemas/geo"
)

var (
	// ErrShort: too little was typed to search for.
	ErrShort = errors.New("too short to search for")
	// ErrUnparsable: no number, street, postcode or commune can be read from what was typed.
	ErrUnparsable = errors.New("no address in it")
)

// Type is what a record is.
type Type = search.Type

// The types, from the most to the least precise.
const (
	HouseNumber  = search.HouseNumber
	StreetType   = search.Street
	LocalityType = search.Locality
	Municipality = search.Municipality
)

// Source, CandidateQuery and CandidateResult are how candidates come from an index outside.
type (
	Source          = search.Source
	CandidateQuery  = search.CandidateQuery
	CandidateResult = search.CandidateResult
)

// Query is a question. Text holds all in one line, or the other fields hold the parts.
type Query struct {
	Text string

	Number     string
	Street     string
	Complement string
	Postcode   string
	Commune    string
	CityCode   string

	Limit int // at least 1
	Filter
	Bias *geo.Point // what lies nearer comes first among what fits about as well

	CommuneFallback bool // Verify answers with the typed commune where it does not have the address
}

// Filter keeps answers out. An empty list lets everything pass.
type Filter struct {
	Types       []Type
	Postcodes   []string
	CityCodes   []string
	Departments []string
}

// Record is an address, a street, a locality or a commune. What is unknown is empty.
type Record struct {
	ID           string
	BanID        string
	BanIDOrigin  Origin // of BanID; empty where there is none
	Type         Type
	Label        string
	Number       string
	Rep          string
	Street       string // of a locality: its name
	Locality     string
	AFNOR        string
	Postcode     string
	CityCode     string
	City         string
	OldCityCode  string
	OldCity      string
	District     string // the municipal arrondissement
	Lon, Lat     float64
	X, Y         float64
	PositionType string
	Certified    bool
	Parcels      []string
	Population   int // of a municipality; 0 when not known
	Department   commune.Division
	Region       commune.Division

	StreetLine, ComplementLine, CityLine string // as La Poste writes them
	Vintage                              string
}

// Origin is who made an id_ban.
type Origin string

const (
	BAN     Origin = "ban"     // the base, in a column of its file, of this vintage or an earlier one
	Lieudit Origin = "lieudit" // the program, where the file had none
)

// Verdict is what the engine says of a match.
type Verdict string

const (
	// Exact: every typed component is confirmed, the number was found, and no other address fits the same words.
	Exact Verdict = "match_exact"
	// Probable: anything else that is good enough to show.
	Probable Verdict = "match_probable"
	// CommuneOnly: the address was not found, and the commune that was typed answers in its place.
	CommuneOnly Verdict = "commune_seule"
)

// Status is what became of a component.
type Status string

const (
	Confirmed   Status = "confirme"     // typed, and so in the base
	Corrected   Status = "corrige"      // typed otherwise than in the base
	Added       Status = "ajoute"       // not typed, known to the base
	Unconfirmed Status = "non_confirme" // typed, and not in the base
	Absent      Status = "absent"       // not known, and not typed but for a complement
)

// Component compares one part of what was typed with what was found.
type Component struct {
	Typed, Kept string
	Status      Status
}

// Components are the parts of an address.
type Components struct {
	Number, Rep, Street, Postcode, City Component

	// Complement is what was typed of building, floor, post box and CEDEX. The base has none of these: it is Absent, and says
	// nothing against a match. It is Confirmed where it is the lieu-dit of the address.
	Complement Component

	// Unknown are words of the complement, as typed, that nothing explains next to a street that was found: most name a building or a company.
	Unknown []string
}

// Match is an answer to Verify.
type Match struct {
	Record
	Score       float64 // 0 to 1
	Next        float64 // the score of the best other answer
	Verdict     Verdict
	Precision   Type
	IsResolved  bool   // it stands for what was typed without human confirmation: what Engine.Resolve goes by
	Reason      Reason // why it does not, empty where it does
	NumberTyped bool
	NumberFound bool     // with its repetition index, where one was typed
	Nearby      []string // numbers of the street close to one that is missing
	Components  Components
}

// Suggestion is an answer to Complete.
type Suggestion struct {
	Record
	Score      float64
	Highlights []Highlight
}

// Highlight is a run of characters of the label that was typed.
type Highlight struct{ Start, Length int }
