// Package address answers questions about addresses from one vintage: typed text is read, compared and judged in
// one way, whatever the kind of question. The same question has the same answer every time, including ties.
//
// A question passes through three packages:
//
//	Query ──> parse.Question     the words, numbers and signs that were typed, and what they may be
//	      ──> search.Result      the candidates of the vintage, scored, in their order
//	      ──> Match, Suggestion  records, and whether each typed part is confirmed
//
// View, Near and Localities look up an id, a position or the name of a commune; they do not search.
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
	// ErrUnparsable: no number, street, postcode or commune can be read from the typed text.
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

// Source, CandidateQuery and CandidateResult let candidates come from an external index.
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
	Bias *geo.Point // of answers that fit about as well, the nearer comes first

	CommuneFallback bool // Verify answers with the typed commune if the address is missing
}

// Filter restricts the answers. An empty list restricts nothing.
type Filter struct {
	Types       []Type
	Postcodes   []string
	CityCodes   []string
	Departments []string
}

// Record is an address, a street, a locality or a commune. Unknown fields are empty.
type Record struct {
	ID           string
	BanID        string
	BanIDOrigin  Origin // of BanID; empty without one
	Type         Type
	Label        string
	Number       string
	Rep          string
	Street       string // the name, for a locality
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
	Population   int // of a municipality; 0 if unknown
	Department   commune.Division
	Region       commune.Division

	StreetLine, ComplementLine, CityLine string // in the form of La Poste
	Vintage                              string
}

// Origin is the source of an id_ban.
type Origin string

const (
	BAN     Origin = "ban"     // the base, in a column of its file, of this vintage or an earlier one
	Lieudit Origin = "lieudit" // the program, if the file had none
)

// Verdict is the engine's judgement of a match.
type Verdict string

const (
	// Exact: every typed component is confirmed, the number was found, and no other address fits the same words.
	Exact Verdict = "match_exact"
	// Probable: anything else that is good enough to show.
	Probable Verdict = "match_probable"
	// CommuneOnly: the address was not found, and the typed commune answers instead.
	CommuneOnly Verdict = "commune_seule"
)

// Status is how a component of the query compares with the record.
type Status string

const (
	Confirmed   Status = "confirme"     // typed as in the base
	Corrected   Status = "corrige"      // typed differently from the base
	Added       Status = "ajoute"       // not typed, known to the base
	Unconfirmed Status = "non_confirme" // typed, and not in the base
	Absent      Status = "absent"       // unknown, and not typed unless it is a complement
)

// Component compares one typed part with the record.
type Component struct {
	Typed, Kept string
	Status      Status
}

// Components are the parts of an address.
type Components struct {
	Number, Rep, Street, Postcode, City Component

	// Complement is the typed building, floor, post box and CEDEX. The base does not have these, so it is Absent, and does
	// not count against a match. It is Confirmed if it is the lieu-dit of the address.
	Complement Component

	// Unknown are words of the complement, as typed, that nothing explains next to a street that was found. Most name a building or a company.
	Unknown []string
}

// Match is an answer to Verify.
type Match struct {
	Record
	Score       float64 // 0 to 1
	Next        float64 // the score of the best other answer
	Verdict     Verdict
	Precision   Type
	IsResolved  bool   // it may be taken for the typed address without human confirmation, as Engine.Resolve does
	Reason      Reason // why it is not; empty if it is
	NumberTyped bool
	NumberFound bool     // with its repetition index, if one was typed
	Nearby      []string // numbers of the street close to the missing one
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
