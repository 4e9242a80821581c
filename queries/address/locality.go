package address

import (
	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
)

// LocalityQuery asks for communes.
type LocalityQuery = commune.Query

// Locality is a commune of the table, where it lies, and how well its name fits.
type Locality struct {
	*commune.Commune
	Lon, Lat   float64 // the middle of its addresses in the vintage, or the table's where it has none there
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
		found[i] = Locality{Commune: m.Commune, Lon: m.Lon, Lat: m.Lat, Score: m.Score}
		if ordinal, ok := e.v.CommuneOf(m.Code); ok {
			at := e.v.Commune(ordinal).Point.Degrees()
			found[i].Lon, found[i].Lat = at.Lon, at.Lat
		}
		found[i].Department, _ = commune.Department(m.Department())
		found[i].Region, _ = commune.RegionOf(m.Department())
	}
	return found, nil
}
