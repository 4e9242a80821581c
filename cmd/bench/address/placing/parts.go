package placing

import (
	"regexp"
	"slices"
	"strings"

	"lieudit/cmd/bench/address/accuracy"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// parts is a question split into its parts. Parts that neither the question nor its answer names are empty.
type parts struct {
	accuracy.Question
	line     string // number and street, as typed
	postcode string
	city     string
	code     string // INSEE code of the commune
}

// isAbsent reports whether the address does not exist, so that no position at a street is right.
func (p *parts) isAbsent() bool { return p.ID == "" }

// splitter splits questions into parts.
type splitter struct{ communes *commune.Table }

// postcodePattern finds the postcode of a line, and the text before and after it.
var postcodePattern = regexp.MustCompile(`^(.*?)[ ,-]*\b(\d{5})\b[ ,-]*(.*)$`)

// split splits a question: by its postcode, otherwise by the commune at its end. The rest comes from the label and the id of its answer.
func (s splitter) split(q accuracy.Question) parts {
	p := parts{Question: q, line: strings.TrimSpace(q.Text)}
	if of := postcodePattern.FindStringSubmatch(q.Label); of != nil {
		p.postcode, p.city = of[2], of[3]
	}
	if id, _, _ := strings.Cut(q.ID, "_"); id != "" {
		p.code = id
	}
	if of := postcodePattern.FindStringSubmatch(p.line); of != nil {
		p.line, p.postcode = of[1], of[2]
		if p.city == "" {
			p.city = of[3]
		}
	} else {
		p.cutCity()
	}
	if p.isAbsent() {
		s.completeAbsent(&p)
	}
	if q.ID != "" && q.ID == p.code { // the answer is a commune
		p.line = ""
	}
	return p
}

// cutCity removes the answer's commune from the end of the line.
func (p *parts) cutCity() {
	words := strings.Fields(p.line)
	for n := range words {
		if p.city != "" && text.Fold(strings.Join(words[n:], " ")) == text.Fold(p.city) {
			p.line = strings.Join(words[:n], " ")
			return
		}
	}
}

// completeAbsent finds the commune and the code of an address that does not exist: the longest name of a commune that ends the line, within its
// postcode. If several communes have that name it takes none.
func (s splitter) completeAbsent(p *parts) {
	words := strings.Fields(p.line)
	if p.postcode != "" {
		words = nil
		p.code = s.only(p.city, p.postcode)
	}
	for n := 1; n < len(words) && p.code == ""; n++ {
		city := strings.Join(words[n:], " ")
		if p.code = s.only(city, ""); p.code != "" {
			p.city, p.line = city, strings.Join(words[:n], " ")
		}
	}
	if c, ok := s.communes.ByCode(p.code); ok && p.postcode == "" && len(c.Postcodes()) > 0 {
		p.postcode = c.Postcodes()[0]
	}
}

// only returns the code of the only commune with a name, and with a postcode if one is given.
func (s splitter) only(name, postcode string) string {
	found := s.communes.Named(text.Terms(name))
	found = slices.DeleteFunc(slices.Clone(found), func(c *commune.Commune) bool {
		return postcode != "" && !c.HasPostcode(postcode) || c.Kind != commune.Current && c.Kind != commune.Arrondissement
	})
	if len(found) != 1 {
		return ""
	}
	return found[0].Code
}
