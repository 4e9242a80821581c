package placing

import (
	"regexp"
	"slices"
	"strings"

	"lieudit/queries/address"
	"lieudit/queries/address/commune"
	"lieudit/schemas/locations"
)

// near is how far from the address an unknown number may be placed.
const near = 300 // metres

// judgement is how well a site was placed. The zero judgement is that of a site that was not placed.
type judgement struct {
	isPlaced     bool
	isMeasurable bool    // the vintage has the expected address
	distance     float64 // metres from that address
	isNumbered   bool    // at a house number
	isRight      bool    // at the expected number and street, or within near if there is no number
	isFalse      bool    // there is no such address, yet it was placed at a street
	isElsewhere  bool    // in another department than a typed one
}

// judge judges the positions of sites.
type judge struct {
	view     func(id string) (address.Record, bool)
	communes *commune.Table
}

// judge compares the position of a site with the expected one and with the site's address. The centre of a commune is right if the address is
// in that commune.
func (j *judge) judge(p *parts, a *locations.SiteAddress, m address.Match, isPlaced bool) (result judgement) {
	if !isPlaced {
		return result
	}
	meant, isKnown := j.view(p.ID)
	isCentre := m.Type == address.Municipality
	result = judgement{isPlaced: true, isMeasurable: isKnown, isNumbered: m.Type == address.HouseNumber, isFalse: !isKnown && !isCentre,
		isElsewhere: !j.liesWhereSaid(a, &m.Record)}
	switch {
	case isKnown && isCentre:
		result.isRight = m.CityCode == meant.CityCode || isArrondissement(&meant, m.CityCode)
	case isKnown:
		result.distance = metres(&meant, &m.Record)
		// The answers of this set are another geocoder's, which may have taken another number of a range.
		isNumber := meant.Type != address.HouseNumber || meant.Number == m.Number || strings.HasPrefix(p.Set, "dpe69")
		result.isRight = result.distance <= near && (!result.isNumbered || isNumber)
	}
	return result
}

// isArrondissement reports whether a record is in an arrondissement of a city.
func isArrondissement(r *address.Record, city string) bool {
	return r.District != "" && commune.DepartmentOf(city) == r.Department.Code
}

// fiveDigits finds codes in a line.
var fiveDigits = regexp.MustCompile(`\b\d{5}\b`)

// liesWhereSaid reports whether a record is in each department that an address names: by its fields, and by a postcode in a line.
func (j *judge) liesWhereSaid(a *locations.SiteAddress, r *address.Record) bool {
	codes := append([]string{a.PostalCode, a.InseeCode}, fiveDigits.FindAllString(a.Line1+" "+a.Line2+" "+a.City, -1)...)
	for i, code := range codes {
		if code == "" {
			continue
		}
		if all := j.departmentsOf(code, i == 1); len(all) > 0 && !slices.Contains(all, r.Department.Code) {
			return false
		}
	}
	return true
}

// departmentsOf returns the departments that a postcode, or an INSEE code in its place, may be in.
func (j *judge) departmentsOf(code string, isINSEE bool) (all []string) {
	if c, ok := j.communes.ByCode(code); ok {
		all = append(all, c.Department())
	}
	if isINSEE {
		return all
	}
	served := j.communes.ByPostcode(code)
	for _, c := range served {
		all = append(all, c.Department())
	}
	if len(served) == 0 {
		all = append(all, commune.DepartmentOf(code))
		if strings.HasPrefix(code, "20") {
			all = append(all, "2A", "2B")
		}
	}
	return all
}
