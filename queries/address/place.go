package address

import (
	"cmp"
	"slices"
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
)

// Place returns the commune that a text names as a place to search around: the text is a postcode, the name of a commune, or both, with or
// without the department or the region, and nothing else. Of several communes it is the most populous one; the name of a city means the
// city itself; the postcode of an arrondissement means the arrondissement. The vintage need not cover the commune. Unlike a text to
// verify, five digits are a postcode first, and the code of a commune if they are not one.
func (e *Engine) Place(typed string) (Record, bool) {
	words := strings.Fields(text.Fold(typed))
	if n := len(words); n > 1 && words[n-1] == "france" {
		words = words[:n-1]
	}
	words = joinPostcode(words)
	if len(words) == 0 {
		return Record{}, false
	}
	finder := placeFinder{&e.records}
	candidates, postcode := finder.placesNamed(words)
	best := mostPopulous(candidates)
	if best == nil {
		return Record{}, false
	}
	r, ok := finder.viewPlace(best)
	if ok && postcode != "" && e.serves(postcode, r.CityCode) {
		r.Postcode, r.CityLine = postcode, cityLine(postcode, r.City)
	}
	return r, ok && (r.Lon != 0 || r.Lat != 0)
}

// joinPostcode joins the words of a postcode that is written with a space or the sign of the country: 48 000, F-48000.
func joinPostcode(words []string) []string {
	if len(words) > 1 && (words[0] == "f" || words[0] == "fr") && isPostcode(words[1]) {
		words = words[1:]
	}
	for i := range len(words) - 1 {
		if len(words[i]) == 2 && len(words[i+1]) == 3 && isPostcode(words[i]+words[i+1]) && (i == 0 || i == len(words)-2) {
			return slices.Concat(words[:i], []string{words[i] + words[i+1]}, words[i+2:])
		}
	}
	return words
}

// isPostcode reports whether a word is five digits.
func isPostcode(word string) bool { return len(word) == 5 && strings.Trim(word, "0123456789") == "" }

// placeFinder finds the communes that the words of a place may mean.
type placeFinder struct{ *records }

// placesNamed returns the communes that some words mean, and the postcode among the words.
func (e placeFinder) placesNamed(words []string) (found []*commune.Commune, postcode string) {
	switch n := len(words); {
	case isPostcode(words[0]):
		postcode, words = words[0], words[1:]
	case isPostcode(words[n-1]):
		postcode, words = words[n-1], words[:n-1]
	}
	if len(words) == 0 {
		if found = e.servedCommunes(postcode); len(found) == 0 {
			found, postcode = e.coveredBy(postcode), ""
		}
		return found, postcode
	}
	if found = e.named(words); len(found) == 0 {
		found = e.namedInDivision(words)
	}
	if postcode != "" {
		found = slices.DeleteFunc(slices.Clone(found), func(c *commune.Commune) bool { return !e.hasPostcode(c, postcode) })
	}
	return found, postcode
}

// servedCommunes returns the communes of a postcode, in the table and in the vintage. A city is left out next to its arrondissements.
func (e placeFinder) servedCommunes(postcode string) []*commune.Commune {
	found := e.table.ByPostcode(postcode)
	communes := e.v.PostcodeCommunes(parse.Number(postcode))
	for i := range communes.Len() {
		c, ok := e.table.ByCode(e.v.Commune(communes.At(i)).String())
		if ok && !slices.Contains(found, c) {
			found = append(found, c)
		}
	}
	return slices.DeleteFunc(found, func(city *commune.Commune) bool {
		return slices.ContainsFunc(found, func(c *commune.Commune) bool { return c.Kind == commune.Arrondissement && c.Parent == city.Code })
	})
}

// coveredBy returns the commune of an INSEE code, or nothing if it is not one.
func (e placeFinder) coveredBy(code string) []*commune.Commune {
	if c, ok := e.table.ByCode(code); ok {
		return []*commune.Commune{c}
	}
	return nil
}

// hasPostcode reports whether a postcode is that of a commune, of one of its arrondissements or of the commune that it is part of.
func (e placeFinder) hasPostcode(c *commune.Commune, postcode string) bool {
	return e.serves(postcode, c.Code) || c.Parent != "" && e.serves(postcode, c.Parent) ||
		slices.ContainsFunc(e.table.Children(c.Code), func(part *commune.Commune) bool { return e.serves(postcode, part.Code) })
}

// named returns the communes whose whole name is some words.
func (e placeFinder) named(words []string) []*commune.Commune {
	return e.table.Named(text.Terms(strings.Join(words, " ")))
}

// namedInDivision returns the communes that are named by the words before the code of a department, or before the name of a department
// or region.
func (e placeFinder) namedInDivision(words []string) []*commune.Commune {
	departments, length := e.table.DivisionsAtEnd(words)
	if d, ok := commune.Department(strings.ToUpper(words[len(words)-1])); ok {
		departments, length = []string{d.Code}, 1
	}
	if length == 0 || length == len(words) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(e.named(words[:len(words)-length])), func(c *commune.Commune) bool {
		return !slices.Contains(departments, c.Department())
	})
}

// mostPopulous returns the most populous of some communes, the first by code on a tie, or nil. A commune that is part
// of another comes after those that are not, because its population is usually unknown.
func mostPopulous(communes []*commune.Commune) *commune.Commune {
	if len(communes) == 0 {
		return nil
	}
	return slices.MinFunc(communes, func(a, b *commune.Commune) int {
		return cmp.Or(cmp.Compare(b.Population, a.Population), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Code, b.Code))
	})
}

// viewPlace is the record of a commune. That of a former commune of which the vintage has no address is the commune that it is part of.
// The centre of a new commune that the table does not know is the middle of those of its parts.
func (e placeFinder) viewPlace(c *commune.Commune) (Record, bool) {
	r, ok := e.viewCommune(c.Code)
	if !ok && c.Parent != "" {
		r, ok = e.viewCommune(c.Parent)
	}
	if ok && r.Lon == 0 && r.Lat == 0 {
		middle := commune.Commune{Code: r.CityCode}
		middle.Lon, middle.Lat = meanCentre(e.table.Children(r.CityCode))
		setCentre(&r, &middle)
	}
	return r, ok
}

// meanCentre is the mean of the centres of some communes, 0 0 if no centre is known.
func meanCentre(communes []*commune.Commune) (lon, lat float64) {
	known := 0.0
	for _, c := range communes {
		if c.Located() {
			lon, lat, known = lon+c.Lon, lat+c.Lat, known+1
		}
	}
	if known == 0 {
		return 0, 0
	}
	return lon / known, lat / known
}

// LocalityQuery asks for communes.
type LocalityQuery = commune.Query

// Locality is a commune of the table, where it lies, and how well its name fits.
type Locality struct {
	*commune.Commune
	Lon, Lat   float64 // the middle of its addresses in the vintage, or the table's centre if it has no addresses
	Department commune.Division
	Region     commune.Division
	Score      float64
}

// Localities returns the communes that fit, the best first; ties by population, then by code. A text without a
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
