package placing

import (
	"strings"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/text"
	"lieudit/schemas/locations"
)

// writing is a way to write the address of a site.
type writing struct {
	name string
	// needs are the parts that the writing requires.
	needs need
	// isUnjudged means that the writing names another address than the expected one: only its department is judged.
	isUnjudged bool
	fill       func(w *writer) locations.SiteAddress
}

// need is a set of parts.
type need uint8

const (
	needLine need = 1 << iota
	needPostcode
	needCity
	needCode
)

// writer provides what a writing may use.
type writer struct {
	*parts
	communes *commune.Table
}

// write writes parts as a site. It returns false if a part is missing.
func (wr *writing) write(communes *commune.Table, p *parts) (c locations.Content, ok bool) {
	for _, part := range [...]struct {
		need
		text string
	}{{needLine, p.line}, {needPostcode, p.postcode}, {needCity, p.city}, {needCode, p.code}} {
		if wr.needs&part.need != 0 && part.text == "" {
			return c, false
		}
	}
	a := wr.fill(&writer{p, communes})
	return locations.Content{Address: &a}, a != (locations.SiteAddress{})
}

const needPlace = needPostcode | needCity

// writings are the ways to write an address. Those that name the commune twice and contradict themselves come last.
var writings = []writing{
	{name: "as typed, in ligne_1", fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.Text}
	}},
	{name: "fields", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, PostalCode: w.postcode, City: w.city}
	}},
	{name: "fields and code", needs: needLine | needPlace | needCode, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, PostalCode: w.postcode, City: w.city, InseeCode: w.code}
	}},
	{name: "all in ligne_1", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line + " - " + w.postcode + " " + w.city}
	}},
	{name: "ligne_1 ends in the postcode", needs: needLine | needPostcode, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line + " - " + w.postcode}
	}},
	{name: "all in ligne_1 and in fields", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line + ", " + w.postcode + " " + w.city, PostalCode: w.postcode, City: w.city}
	}},
	{name: "no commune", needs: needLine | needPostcode, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, PostalCode: w.postcode}
	}},
	{name: "no postcode", needs: needLine | needCity, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, City: w.city}
	}},
	{name: "code alone", needs: needLine | needCode, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, InseeCode: w.code}
	}},
	{name: "code for postcode", needs: needLine | needCode | needCity, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, PostalCode: w.code, City: w.city}
	}},
	{name: "capitals, CEDEX", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: capitals(w.line), PostalCode: w.postcode, City: capitals(w.city) + " CEDEX"}
	}},
	{name: "postcode of a CEDEX", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, PostalCode: w.cedexPostcode(), City: w.city + " CEDEX 9"}
	}},
	{name: "street in ligne_2", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: "Espace Simone Veil", Line2: w.line, PostalCode: w.postcode, City: w.city}
	}},
	{name: "town in ligne_2", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, Line2: w.postcode + " " + capitals(w.city)}
	}},
	{name: "building in ligne_2", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, Line2: "Bâtiment C, 2e étage", PostalCode: w.postcode, City: w.city}
	}},
	{name: "commune field holds the postcode", needs: needLine | needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.line, City: w.postcode + " " + capitals(w.city)}
	}},
	{name: "town in ligne_1", needs: needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.postcode + " " + capitals(w.city)}
	}},
	{name: "town in ligne_1 and in fields", needs: needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: w.postcode + " " + capitals(w.city), PostalCode: w.postcode, City: w.city}
	}},
	{name: "town in fields alone", needs: needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{PostalCode: w.postcode, City: w.city}
	}},
	{name: "an unknown building", needs: needPlace, fill: func(w *writer) locations.SiteAddress {
		return locations.SiteAddress{Line1: "Espace Simone Veil", PostalCode: w.postcode, City: w.city}
	}},
	{name: "other department: postcode", needs: needLine | needPostcode, isUnjudged: true,
		fill: func(w *writer) locations.SiteAddress {
			return locations.SiteAddress{Line1: w.line, PostalCode: w.otherPostcode()}
		}},
	{name: "other department: postcode beside the commune", needs: needLine | needPlace, isUnjudged: true,
		fill: func(w *writer) locations.SiteAddress {
			return locations.SiteAddress{Line1: w.line, PostalCode: w.otherPostcode(), City: w.city}
		}},
	{name: "other department: code", needs: needLine | needPlace, isUnjudged: true,
		fill: func(w *writer) locations.SiteAddress {
			return locations.SiteAddress{Line1: w.line, PostalCode: w.postcode, City: w.city, InseeCode: w.otherCode()}
		}},
	{name: "other department: postcode in ligne_1", needs: needLine | needPlace, isUnjudged: true,
		fill: func(w *writer) locations.SiteAddress {
			return locations.SiteAddress{Line1: w.line + ", " + w.otherPostcode(), PostalCode: w.postcode, City: w.city}
		}},
	{name: "other department: code beside ligne_1", needs: needLine | needPlace, isUnjudged: true,
		fill: func(w *writer) locations.SiteAddress {
			return locations.SiteAddress{Line1: w.line + ", " + w.postcode + " " + w.city, InseeCode: w.otherCode()}
		}},
}

// capitals writes a text as on an envelope: in capitals without accents, with its punctuation.
func capitals(s string) string {
	var b strings.Builder
	for _, r := range s {
		if folded := text.Fold(string(r)); folded != "" {
			b.WriteString(folded)
		} else {
			b.WriteRune(r)
		}
	}
	return strings.ToUpper(b.String())
}

// cedexPostcode returns a postcode of the department that no commune has. CEDEX postcodes often equal the INSEE code of a commune.
func (w *writer) cedexPostcode() string {
	for _, tail := range []string{"042", "077", "007", "909", "919", "929", "939"} {
		code := w.postcode[:2] + tail
		if len(w.communes.ByPostcode(code)) == 0 {
			return code
		}
	}
	return w.postcode
}

// otherCode returns the code of a commune in another department.
func (w *writer) otherCode() string {
	if strings.HasPrefix(w.postcode, "48") {
		return "63113" // Clermont-Ferrand
	}
	return "48095" // Mende
}

// otherPostcode returns the postcode of that commune.
func (w *writer) otherPostcode() string {
	if strings.HasPrefix(w.postcode, "48") {
		return "63000"
	}
	return "48000"
}
