package sitefile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lieudit/http/kit"
	"lieudit/http/sitefile/clean"
	"lieudit/http/sitefile/mapping"
)

// identifier gives sites their external ids, and finds those that two sites share.
type identifier struct {
	b         *builder
	column    int
	hash      []string
	isNumeric bool // every id ends in .0, as a spreadsheet or pandas writes whole numbers
	known     map[string]knownSite
	lower     map[string]string // the first id of each spelling in lower case
	proposals []*proposal
}

// knownSite is the site that has an id.
type knownSite struct {
	line   int
	raw    string // the id as the file has it
	digest [32]byte
}

// proposal is a list of fields from which ids could be made, as long as no two different rows give the same.
type proposal struct {
	parts    []string
	known    map[string][32]byte
	isBroken bool
}

func newIdentifier(b *builder) *identifier {
	id := b.mapping.ID
	x := &identifier{b: b, column: id.Column, hash: id.Hash, known: map[string]knownSite{}, lower: map[string]string{}}
	if id.Column >= 0 {
		x.isNumeric = b.mapping.ID.HasDecimalSuffix
	}
	if id.Column < 0 && len(id.Hash) == 0 && !id.IsUnknown {
		x.proposals = b.propose()
	}
	return x
}

// propose lists the fields of the file from which ids could be made, the shortest first.
func (b *builder) propose() []*proposal {
	var list []*proposal
	for _, fields := range [][]mapping.Field{
		{mapping.Name, mapping.Line1, mapping.PostalCode},
		{mapping.Name, mapping.Line1, mapping.PostalCode, mapping.City},
		{mapping.Name, mapping.Line1, mapping.PostalCode, mapping.City, mapping.Lat, mapping.Lon},
		{mapping.Name, mapping.Line1, mapping.PostalCode, mapping.City, mapping.Phone, mapping.Website},
	} {
		var parts []string
		for _, f := range fields {
			if b.hasField(f) {
				parts = append(parts, string(f))
			}
		}
		if len(parts) > 0 && !slices.ContainsFunc(list, func(p *proposal) bool { return slices.Equal(p.parts, parts) }) {
			list = append(list, newProposal(parts...))
		}
	}
	return append(append(list, b.proposeColumns()...), newProposal("*"))
}

// proposeColumns proposes the columns that are named like ids but are not unique, each together with the name.
func (b *builder) proposeColumns() []*proposal {
	var list []*proposal
	for _, column := range b.mapping.ID.Candidates {
		name := b.mapping.Columns[column]
		if name != "" && !strings.ContainsAny(name, ",'") {
			list = append(list, newProposal(name), newProposal(name, string(mapping.Name)))
		}
	}
	return list
}

func newProposal(parts ...string) *proposal {
	return &proposal{parts: parts, known: map[string][32]byte{}}
}

// hasField reports whether sites of the file can have a field.
func (b *builder) hasField(f mapping.Field) bool {
	switch f {
	case mapping.Lat, mapping.Lon:
		return len(b.mapping.Positions) > 0
	case mapping.Line1:
		return len(b.columns[mapping.Line1])+len(b.columns[mapping.StreetName]) > 0
	}
	return len(b.columns[f]) > 0
}

// identify gives a site its id, or returns false if the site repeats another one in full.
func (x *identifier) identify(s *Site) bool {
	if x.proposals != nil {
		return x.tryProposals(s)
	}
	raw := ""
	if len(x.hash) > 0 {
		s.ExternalID = x.hashSite(s, x.hash)
		raw = s.ExternalID
	} else if raw = x.rawID(); x.leavesOut(s, raw) {
		return false
	} else if !x.readID(s, raw) {
		return true
	}
	return x.register(s, raw)
}

// rawID is the id of the record as the file has it.
func (x *identifier) rawID() string {
	if x.b.mapping.IsExport {
		return x.b.unescapeCell(x.column)
	}
	return strings.TrimSpace(x.b.value(x.column).Text)
}

// leavesOut reports whether a site without an id is left out. A few are; many mean that the column is the wrong one, which is an error.
func (x *identifier) leavesOut(s *Site, raw string) bool {
	if !x.b.mapping.ID.HasFewGaps || x.b.mapping.IsExport || raw != "" && !clean.IsEmptySign(raw) {
		return false
	}
	x.b.warnings.add(warningNoID, s.Line, x.b.mapping.Columns[x.column], s.Content.Name, "")
	return true
}

// invalidIDCharacters are signs that no external id can have.
var invalidIDCharacters = regexp.MustCompile(`[^A-Za-z0-9._~:*@+-]`)

// shortenedNumber is a number as a spreadsheet shows a long one.
var shortenedNumber = regexp.MustCompile(`^\d([.,]\d+)?[eE]\+\d+$`)

// isShortened reports whether a text is such a number. One character decides for most texts.
func isShortened(text string) bool {
	return strings.ContainsAny(text, "+") && shortenedNumber.MatchString(text)
}

// readID makes an external id of the text of a column; false if it cannot be one, which is an error.
func (x *identifier) readID(s *Site, raw string) bool {
	id := raw
	if !x.b.mapping.IsExport {
		id, _ = clean.Text(raw, false)
	}
	if whole, ok := strings.CutSuffix(id, ".0"); x.isNumeric && ok {
		x.b.recordFix(fixNumericID, x.column, raw, whole)
		id = whole
	}
	if other := invalidIDCharacters.ReplaceAllString(id, "-"); other != id && !x.b.mapping.IsExport {
		x.b.recordFix(fixID, x.column, raw, other)
		id = other
	}
	fault, advice := "", ""
	switch {
	case x.b.mapping.IsExport && invalidIDCharacters.MatchString(id):
		fault, advice = "an id with signs that no exported id has", exportAgain
	case id == "" || !x.b.mapping.IsExport && clean.IsEmptySign(id):
		fault, advice = "no id in the column "+x.b.mapping.Columns[x.column], "give every row an id, or take another column with --id"
	case len(id) > 128:
		fault, advice = "an id of more than 128 characters", "take another column with --id"
	case !x.b.mapping.IsExport && isShortened(raw): // in an export, the comparison with the stored sites finds it
		fault = "an id that a spreadsheet has shortened: its last digits are lost"
		advice = "format the column as text where the file comes from, and save it again"
	}
	if fault != "" {
		f := x.b.faults.add(fault, s.Line, x.b.mapping.Columns[x.column], raw, "")
		f.advice = advice
		return false
	}
	s.ExternalID = id
	return true
}

// register remembers the id of a site. It returns false if a site with this id is otherwise the same.
func (x *identifier) register(s *Site, raw string) bool {
	digest := digestOf(s)
	first, isKnown := x.known[s.ExternalID]
	if !isKnown {
		x.known[s.ExternalID] = knownSite{s.Line, raw, digest}
		lower := strings.ToLower(s.ExternalID)
		if other, ok := x.lower[lower]; ok && other != s.ExternalID {
			x.b.warnings.add(warningIDCase, s.Line, "external_id", s.ExternalID, "")
		}
		x.lower[lower] = s.ExternalID
		return true
	}
	if first.digest == digest && first.raw == raw {
		x.b.warnings.add(warningRepeated, s.Line, "", s.ExternalID, "")
		return false
	}
	fault := "an id that an earlier line has"
	if first.raw != raw {
		fault = "an id that becomes the same as another one once / and other signs are -"
	}
	f := x.b.faults.add(fault, s.Line, "external_id", fmt.Sprintf("%s (line %d)", raw, first.line), "")
	f.advice = "give every place an id of its own, or take another column with --id"
	return true
}

// digestOf is the digest of everything in a site but its id.
func digestOf(s *Site) [32]byte {
	text, err := kit.MarshalJSON(s.Content)
	if err != nil { // cannot happen: every JSON in it was read
		text = strconv.AppendInt(nil, int64(s.Line), 10)
	}
	return sha256.Sum256(text)
}

// hashSite is an id made from some parts of a site: 20 hexadecimal digits.
func (x *identifier) hashSite(s *Site, parts []string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%s\x1f", x.partOf(s, part))
	}
	return hex.EncodeToString(h.Sum(nil))[:20]
}

// partOf is the text of a field, of a column or, with *, of the whole site.
func (x *identifier) partOf(s *Site, part string) string {
	c := &s.Content
	switch mapping.Field(part) {
	case mapping.Name:
		return c.Name
	case mapping.Lat:
		return formatDegrees(c.Lat)
	case mapping.Lon:
		return formatDegrees(c.Lon)
	case mapping.Phone:
		return c.Phone
	case mapping.Email:
		return c.Email
	case mapping.Website:
		return c.Website
	case "*":
		digest := digestOf(s)
		return hex.EncodeToString(digest[:])
	}
	if a := c.Address; a != nil {
		switch mapping.Field(part) {
		case mapping.Line1:
			return a.Line1
		case mapping.Line2:
			return a.Line2
		case mapping.PostalCode:
			return a.PostalCode
		case mapping.City:
			return a.City
		case mapping.InseeCode:
			return a.InseeCode
		}
	}
	for column, name := range x.b.mapping.Columns {
		if strings.EqualFold(name, part) {
			return strings.TrimSpace(x.b.value(column).Text)
		}
	}
	return ""
}

func formatDegrees(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// tryProposals gives a site the id of the last proposal, which always works, and drops the proposals that give two different sites
// one id.
func (x *identifier) tryProposals(s *Site) bool {
	digest := digestOf(s)
	isNew := true
	for _, p := range x.proposals {
		if p.isBroken {
			continue
		}
		id := x.hashSite(s, p.parts)
		known, isKnown := p.known[id]
		switch {
		case !isKnown:
			p.known[id] = digest
		case known == digest:
			isNew = false
		default:
			p.isBroken, p.known = true, nil
		}
		s.ExternalID = id
	}
	if !isNew {
		x.b.warnings.add(warningRepeated, s.Line, "", s.Content.Name, "")
	}
	return isNew
}

// finish reports which proposal is left, and what is wrong with the ids that the file has.
func (x *identifier) finish() {
	for _, p := range x.proposals {
		if p.isBroken {
			continue
		}
		x.b.imported.ProposedID = "hash:" + strings.Join(p.parts, ",")
		advice := "--id '" + x.b.imported.ProposedID + "' makes ids of these fields, or name a column with --id"
		if p.parts[0] == "*" {
			advice = "--id '" + x.b.imported.ProposedID + "' makes ids of all that a row says, so that a place whose row changes is a new one; " +
				"or name a column with --id"
		}
		reason := "no column says what each place is called (external_id), which tells places apart when the file is imported again"
		if x.b.mapping.ID.Reason != "" {
			advice = "correct these lines; or, if the column is none that tells places apart: " + advice
			reason = x.b.mapping.ID.Reason + ", and no other column can be the external_id"
		}
		x.b.imported.addError(advice, "%s", reason)
		return
	}
}
