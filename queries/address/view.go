package address

import (
	"strings"

	"github.com/google/uuid"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/vintage"
)

// View is the record an id names: of a commune, a street, a locality or a house number, of this vintage or an earlier
// one, or an id_ban.
func (x *records) View(id string) (Record, bool) {
	if len(id) == 5 {
		return x.viewCommune(id)
	}
	entity, ok := x.v.ByID(id)
	if !ok && len(id) == 36 {
		if u, err := uuid.Parse(id); err == nil {
			entity, ok = x.v.ByUUID(u)
		}
	}
	if !ok {
		return Record{}, false
	}
	return x.entityRecord(entity), true
}

// entityRecord is an entity as an answer.
func (x *records) entityRecord(entity vintage.Entity) Record {
	street := x.v.StreetOfEntity(entity)
	if row, ok := x.v.Row(entity); ok {
		return x.rowRecord(row, street)
	}
	first, _ := x.v.StreetFacets(street)
	return x.streetRecord(street, x.v.Facet(first))
}

// viewCommune is the commune of a code. That of Paris, Lyon or Marseille is the city, which the base knows by its
// arrondissements; that of a former commune is the one it is part of.
func (x *records) viewCommune(code string) (Record, bool) {
	ordinals := x.ordinals(strings.ToUpper(code))
	if len(ordinals) == 0 {
		return x.unmapped(strings.ToUpper(code))
	}
	r := x.communeRecord(ordinals[0], x.v.CommunePostcodes(ordinals[0]).At(0))
	if known, ok := x.table.ByCode(code); ok && len(ordinals) > 1 {
		r.ID, r.CityCode, r.City, r.Label, r.District, r.Population = known.Code, known.Code, known.Name, known.Name, "", int(known.Population)
		r.CityLine = cityLine(r.Postcode, known.Name)
		setCentre(&r, known)
	}
	return r, true
}

// unmapped is a commune of which the vintage has no address, as those outside a vintage that does not cover France.
func (x *records) unmapped(code string) (Record, bool) {
	c, ok := x.table.ByCode(code)
	if !ok || c.Kind == commune.Delegated || c.Kind == commune.Associated {
		return Record{}, false
	}
	r := Record{ID: c.Code, Type: Municipality, Label: c.Name, CityCode: c.Code, City: c.Name, Population: int(c.Population),
		Vintage: x.v.Millesime}
	setCentre(&r, c)
	if codes := c.Postcodes(); len(codes) > 0 {
		r.Postcode = codes[0]
	}
	r.CityLine = cityLine(r.Postcode, c.Name)
	x.addCommune(&r)
	return r, true
}

// knows reports whether a line is the name of a commune or, while it is being typed, the beginning of one.
func (x *communes) knows(line string, growing bool) bool { return x.table.IsName(line, growing) }

// isUnmapped reports whether a code is that of a commune of which the vintage has no address, so nothing is found in it.
func (x *communes) isUnmapped(code string) bool {
	_, isKnown := x.table.ByCode(code)
	return code != "" && isKnown && len(x.ordinals(code)) == 0
}
