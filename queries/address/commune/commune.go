// Package commune is the table of France's communes: current, delegated and associated ones, the arrondissements of
// Paris, Lyon and Marseille, departments and regions. It is part of the program, immutable, and small in memory.
//
// Made from @etalab/decoupage-administratif 6.0.0 (Code officiel géographique 2026), Licence Ouverte 2.0, joined with
// centres and bounds reckoned from the Base Adresse Nationale, Licence Ouverte 2.0.
package commune

import "iter"

// Kind tells what a commune is today.
type Kind uint8

const (
	Current        Kind = iota
	Delegated           // part of a new commune, with a mayor of its own
	Associated          // part of another since the mergers of the 1970s
	Arrondissement      // of Paris, Lyon or Marseille
)

// Commune is one entry. A delegated commune may have the code of the commune it is part of.
type Commune struct {
	Code       string // INSEE, such as 48095 or 2A004
	Name       string
	Parent     string // the code of the commune it is part of; empty for a current one
	Kind       Kind
	Population uint32 // 0 where not known: most delegated and associated ones

	Lon, Lat float64 // WGS 84 degrees, 0 0 where not known
	Bounds   Bounds  // zero where not known

	postcodes string // five bytes each
}

// Bounds is a rectangle of degrees around a commune.
type Bounds struct{ West, South, East, North float64 }

// Located says whether centre and bounds are known.
func (c *Commune) Located() bool { return c.Lon != 0 || c.Lat != 0 }

// Postcodes are the commune's, in order; none where the source has none.
func (c *Commune) Postcodes() []string {
	codes := make([]string, 0, len(c.postcodes)/postcodeLength)
	for i := 0; i < len(c.postcodes); i += postcodeLength {
		codes = append(codes, c.postcodes[i:i+postcodeLength])
	}
	return codes
}

// HasPostcode says whether a postcode is one of the commune's.
func (c *Commune) HasPostcode(postcode string) bool {
	if len(postcode) != postcodeLength {
		return false
	}
	for i := 0; i < len(c.postcodes); i += postcodeLength {
		if c.postcodes[i:i+postcodeLength] == postcode {
			return true
		}
	}
	return false
}

// Department is the code of the department or overseas territory, such as 48, 2A or 974. A commune that has become part
// of one in another department belongs there.
func (c *Commune) Department() string {
	if c.Parent != "" {
		return DepartmentOf(c.Parent)
	}
	return DepartmentOf(c.Code)
}

// All gives every entry, ordered by code, a current commune before its delegated namesake.
func (t *Table) All() iter.Seq[*Commune] {
	return func(yield func(*Commune) bool) {
		for i := range t.communes {
			if !yield(&t.communes[i]) {
				return
			}
		}
	}
}
