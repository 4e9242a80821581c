// Package mapping finds out what the columns of a file of sites hold: which one is the name, which the postcode, which two the
// position. It knows nothing about file formats, and it changes no value.
//
// A column is recognized by its name first, in the table of names.go, and its content must agree: a column `telephone` of yes and
// no is not a telephone. A column whose name says nothing is recognized by its content if that fits exactly one field. A column without a
// field becomes a property of the site under its own name, so that no fact of the file is lost.
//
//	record.Record ──► Profile.Observe ──► Profile ──► Guess, with the user's wishes (Given) ──► Mapping
//
// Profile holds a sample of each column and whether its values are unique. Mapping has a Target for each column, and the origin of
// positions (Positions) and of external ids (ID).
package mapping

import (
	"fmt"
	"slices"
	"strings"
)

// Field is what a column can hold. The fields of a site have the names of the API.
type Field string

// The fields of a site.
const (
	ExternalID Field = "external_id"
	Name       Field = "nom"
	Line1      Field = "ligne_1"
	Line2      Field = "ligne_2" // several columns may be lines of it
	PostalCode Field = "code_postal"
	City       Field = "commune"
	InseeCode  Field = "code_insee"
	Country    Field = "pays"
	IDBan      Field = "id_ban"
	Lat        Field = "lat"
	Lon        Field = "lon"
	Hours      Field = "horaires"
	Phone      Field = "telephone"
	Email      Field = "email"
	Website    Field = "site_web"
	Tags       Field = "tags"
	Properties Field = "proprietes"
	Active     Field = "actif" // whether the site is in business: a closed one is left out, and a sync makes it inactive
)

// Parts from which a site's fields are made.
const (
	HouseNumber Field = "numero"
	Suffix      Field = "rep"
	StreetType  Field = "type_voie"
	StreetName  Field = "nom_voie"
	Pair        Field = "lat_lon"    // both coordinates in one column
	PostalTown  Field = "cp_commune" // postcode and commune in one column
	Shape       Field = "geometrie"  // WKT or GeoJSON
	X           Field = "x"          // metres of a projection
	Y           Field = "y"
	Monday      Field = "lundi"
	Tuesday     Field = "mardi"
	Wednesday   Field = "mercredi"
	Thursday    Field = "jeudi"
	Friday      Field = "vendredi"
	Saturday    Field = "samedi"
	Sunday      Field = "dimanche"

	// bareNumber is a column called only "number": a house number if the street has none, otherwise a property. It never leaves Guess.
	bareNumber Field = "numero?"
	// Address is the address of an exported site as one text of JSON.
	Address Field = "adresse"
	// PositionSource is position_source in an exported file: `ban` says that the position came from the address.
	PositionSource Field = "position_source"
)

// Weekdays are the fields of the days, from Monday on.
var Weekdays = [7]Field{Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday}

// Evidence is how a column was recognized.
type Evidence string

// The kinds of evidence.
const (
	ByName    Evidence = "name"
	ByContent Evidence = "content"
	ByUser    Evidence = "given"
)

// Target is where a column is stored: in a field, in a property, or not at all.
type Target struct {
	Field       Field    // "": none
	Evidence    Evidence // of Field
	IsSecondary bool     // the column holds a position, and is read only if a row has no better one
	Property    string   // the key in proprietes; "" without one
	Fallback    Field    // of a property: a field that a row also takes from here if its own column is empty
	LeftOut     string   // why the column is not stored; "" if it is
}

// notStored is the written target of a column that is left out.
const notStored = "-"

// String writes a target: the field; proprietes, or proprietes+telephone for one that is a fallback too; - for a
// column that is not stored.
func (t Target) String() string {
	switch {
	case t.LeftOut != "":
		return notStored
	case t.Field != "":
		return string(t.Field)
	case t.Fallback != "":
		return string(Properties) + "+" + string(t.Fallback)
	}
	return string(Properties)
}

// ParseTarget reads a target that String wrote or that a user typed; false if it names no field.
func ParseTarget(text string) (t Target, ok bool) {
	name, fallback, isFallback := strings.Cut(strings.ToLower(strings.TrimSpace(text)), "+")
	name = strings.TrimPrefix(name, "adresse.")
	switch {
	case name == notStored:
		return Target{LeftOut: "ignored"}, true
	case name == string(Properties) && isFallback:
		return Target{Fallback: Field(fallback)}, slices.Contains(fallbackFields, Field(fallback))
	case name == string(Properties):
		return Target{}, true
	}
	return Target{Field: Field(name)}, !isFallback && slices.Contains(FieldNames(), name)
}

// Mapping assigns targets to the columns of a file.
type Mapping struct {
	Columns   []string // names as in the file
	Targets   []Target // of each column
	Positions []Position
	ID        ID
	Misnamed  []Misnamed
	IsQuoted  []bool // of each column: all its values begin with an apostrophe that keeps them texts in a spreadsheet
	IsExport  bool   // the file was exported by lieudit: its values are exact and are not fixed

	// IsFlatExport: the members of the address are columns of an export, as in its CSV.
	IsFlatExport bool
}

// Misnamed is a column that is named exactly after a field which no column holds, and whose content is something else.
type Misnamed struct {
	Column int
	Field  Field
}

// ColumnKeys identify the columns of a file: each is the name, with #2 appended for the second column of that name.
func (m *Mapping) ColumnKeys() []string {
	keys, count := make([]string, len(m.Columns)), map[string]int{}
	for i, name := range m.Columns {
		folded := foldKey(name)
		if count[folded]++; count[folded] == 1 {
			keys[i] = name
		} else {
			keys[i] = fmt.Sprintf("%s#%d", name, count[folded])
		}
	}
	return keys
}

// Find is the index of the column with a field, the first one of several; false if there is none.
func (m *Mapping) Find(f Field) (int, bool) {
	for i, t := range m.Targets {
		if t.Field == f {
			return i, true
		}
	}
	return 0, false
}

// FieldNames are the written fields that a user can give a column.
func FieldNames() []string {
	return []string{
		"external_id", "nom", "ligne_1", "ligne_2", "code_postal", "commune", "code_insee", "pays", "id_ban", "lat", "lon", "horaires", "telephone", "email", "site_web", "tags",
		"proprietes", "numero", "rep", "type_voie", "nom_voie", "cp_commune", "actif", "lat_lon", "geometrie", "x", "y",
		"lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche",
	}
}

// Error is a reason why a file cannot be imported as it is, and what its user can do.
type Error struct {
	Reason string
	Advice string
}
