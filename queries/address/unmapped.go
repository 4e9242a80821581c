package address

import "lieudit/queries/address/commune"

// unmapped is a commune of which the vintage has no address, as those outside a vintage that does not cover France.
func (e *Engine) unmapped(code string) (Record, bool) {
	c, ok := e.table.ByCode(code)
	if !ok || c.Kind == commune.Delegated || c.Kind == commune.Associated {
		return Record{}, false
	}
	r := Record{ID: c.Code, Type: Municipality, Label: c.Name, CityCode: c.Code, City: c.Name, Population: int(c.Population),
		Vintage: e.v.Millesime}
	setCentre(&r, c)
	if codes := c.Postcodes(); len(codes) > 0 {
		r.Postcode = codes[0]
	}
	r.CityLine = cityLine(r.Postcode, c.Name)
	e.addCommune(&r)
	return r, true
}

// knows reports whether a line is the name of a commune, or as far as it is typed the beginning of one.
func (e *Engine) knows(line string, growing bool) bool { return e.table.IsName(line, growing) }

// isUnmapped reports whether a code is that of a commune of which the vintage has no address: nothing is found in it.
func (e *Engine) isUnmapped(code string) bool {
	_, isKnown := e.table.ByCode(code)
	return code != "" && isKnown && len(e.ordinals(code)) == 0
}
