package address

import (
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// LocalityQuery asks for communes.
type LocalityQuery = commune.Query

// Locality is a commune of the table, and how well its name fits.
type Locality struct {
	*commune.Commune
	Department commune.Division
	Region     commune.Division
	Score      float64
}

// Localities are the communes that fit, the best first; of as good ones the most populous, then by code. A text without a
// letter or digit is ErrUnparsable.
func (e *Engine) Localities(query LocalityQuery) ([]Locality, error) {
	if query.Text != "" && text.Fold(query.Text) == "" {
		return nil, ErrUnparsable
	}
	matches := e.table.Search(query)
	found := make([]Locality, len(matches))
	for i, m := range matches {
		found[i] = Locality{Commune: m.Commune, Score: m.Score}
		found[i].Department, _ = commune.Department(m.Department())
		found[i].Region, _ = commune.RegionOf(m.Department())
	}
	return found, nil
}
