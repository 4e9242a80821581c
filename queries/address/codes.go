package address

import (
	"slices"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/parse"
	"lieudit/queries/address/text"
)

// AcceptsPostcode reports whether a typed postcode may be that of a record: one of its commune's or, if no commune has
// it, as with CEDEX, one of its department. Text that is not a postcode is accepted.
func (x *communes) AcceptsPostcode(typed string, r *Record) bool {
	if len(typed) != 5 || parse.Number(typed) == 0 || typed == r.Postcode || x.serves(typed, r.CityCode) {
		return true
	}
	isServed := len(x.table.ByPostcode(typed)) > 0 || x.v.PostcodeCommunes(parse.Number(typed)).Len() > 0
	department, of := commune.DepartmentOf(typed), r.Department.Code
	return !isServed && (department == of || department == "20" && (of == "2A" || of == "2B"))
}

// serves reports whether a postcode is one of a commune's, in the vintage or in the table.
func (x *communes) serves(postcode, code string) bool {
	if known, ok := x.table.ByCode(code); ok && known.HasPostcode(postcode) {
		return true
	}
	communes := x.v.PostcodeCommunes(parse.Number(postcode))
	for i := range communes.Len() {
		if x.v.Commune(communes.At(i)).String() == code {
			return true
		}
	}
	return false
}

// AdmitsCode reports whether a typed INSEE code may be that of a record's commune: its own, that of a former commune in it,
// or of the city whose arrondissement it is.
func (x *communes) AdmitsCode(typed string, r *Record) bool {
	isOf := func(commune uint32) bool { return x.v.Commune(commune).String() == r.CityCode }
	return typed == r.CityCode || typed == r.OldCityCode || slices.ContainsFunc(x.ordinals(typed), isOf)
}

// IsCodeOf reports whether five digits next to the name of a commune are its INSEE code and not its postcode. The name of a city
// names its arrondissements too.
func (x *communes) IsCodeOf(digits, name string) bool {
	c, ok := x.table.ByCode(digits)
	if !ok || c.HasPostcode(digits) {
		return false
	}
	isNamed := func(of *commune.Commune) bool { return of.Code == c.Code || of.Code == c.Parent }
	return slices.ContainsFunc(x.table.Named(text.Terms(name)), isNamed)
}

// IsAmbiguous reports whether the name of a commune, without a code, may mean another commune than that of a record. If the commune
// itself is the answer, any other of that name counts, otherwise only one of which the vintage has no address to compare with.
func (x *communes) IsAmbiguous(name string, r *Record) bool {
	return slices.ContainsFunc(x.table.Named(text.Terms(name)), func(c *commune.Commune) bool {
		return !x.AdmitsCode(c.Code, r) && (r.Type == Municipality || len(x.ordinals(c.Code)) == 0)
	})
}

// IsCommune reports whether a text is the whole name of a commune, also of a former one.
func (x *communes) IsCommune(name string) bool { return x.table.IsName(name, false) }
