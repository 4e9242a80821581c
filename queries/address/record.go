package address

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"lieudit/queries/address/commune"
	"lieudit/queries/address/search"
	"lieudit/queries/address/text"
	"lieudit/queries/address/vintage"
)

// records makes records of communes, streets and house numbers.
type records struct{ communes }

// record is a candidate as an answer.
func (x *records) record(c *search.Candidate) Record {
	switch {
	case c.IsCity:
		return x.cityRecord(c.Commune)
	case c.Type == Municipality:
		return x.communeRecord(c.Commune, c.Facet().Postcode)
	case c.Type == HouseNumber:
		return x.rowRecord(c.Row, c.Street)
	}
	return x.streetRecord(c.Street, c.Facet())
}

// cityRecord is the record of Paris, Lyon or Marseille as a whole, from one of its arrondissements.
func (x *records) cityRecord(arrondissement uint32) Record {
	known, ok := x.table.ByCode(x.v.Commune(arrondissement).String())
	if ok && known.Parent != "" {
		if r, ok := x.viewCommune(known.Parent); ok {
			return r
		}
	}
	return x.communeRecord(arrondissement, x.v.CommunePostcodes(arrondissement).At(0))
}

func (x *records) communeRecord(ordinal, postcode uint32) Record {
	c := x.v.Commune(ordinal)
	name := string(x.v.Name(c.Name))
	r := Record{ID: c.String(), Type: Municipality, Label: name, CityCode: c.String(), City: name, Vintage: x.v.Millesime}
	setPostcode(&r, postcode)
	setPoint(&r, c.Point)
	x.addCommune(&r)
	if known, ok := x.table.ByCode(r.CityCode); ok {
		r.Population = int(known.Population)
	}
	if r.Postcode == "" {
		r.Postcode = x.onlyPostcode(r.CityCode)
	}
	r.CityLine = cityLine(r.Postcode, name)
	return r
}

// setCentre puts the record of a commune without addresses at the centre that the table has. All others lie in
// the middle of their addresses, which is in town, for all endpoints: the table's centres are those of the territories.
func setCentre(r *Record, c *commune.Commune) {
	if !c.Located() {
		return
	}
	r.Lon, r.Lat = c.Lon, c.Lat
	r.X, r.Y, _ = c.Projected()
}

// addCommune adds the data of the table of communes.
func (x *records) addCommune(r *Record) {
	code := commune.DepartmentOf(r.CityCode)
	if known, ok := x.table.ByCode(r.CityCode); ok {
		code = known.Department()
		if known.Kind == commune.Arrondissement {
			r.District = known.Name
		}
	}
	r.Department, _ = commune.Department(code)
	r.Region, _ = commune.RegionOf(code)
}

func (x *records) streetRecord(street uint32, f vintage.Facet) Record {
	s := x.v.Street(street)
	r := x.base(s, f)
	r.Type = StreetType
	if s.Locality {
		r.Type, r.Locality = LocalityType, r.Street
	}
	entity := x.v.StreetEntity(street)
	x.identify(&r, entity)
	setPoint(&r, s.Point)
	x.finish(&r)
	return r
}

func (x *records) rowRecord(row, street uint32) Record {
	s := x.v.Street(street)
	f := x.v.RowFacet(row, s)
	r := x.base(s, f)
	entity := vintage.RowEntity(row)
	r.Type = HouseNumber
	x.identify(&r, entity)
	r.Number, r.Rep = strconv.Itoa(int(x.v.Number(row))), string(x.v.Rep(row))
	position, certified := x.v.RowKind(row)
	r.PositionType, r.Certified = string(x.v.Name(position)), certified
	r.Parcels = x.v.Parcels(row, street)
	setPoint(&r, x.v.RowPoint(row))
	x.finish(&r)
	return r
}

// identify sets the ids of a record. Vintages of the first format may hold a UUID of zeros for a missing one.
func (x *records) identify(r *Record, entity vintage.Entity) {
	r.ID = x.v.ID(entity)
	u := x.v.UUID(entity)
	if u == uuid.Nil {
		return
	}
	r.BanID, r.BanIDOrigin = u.String(), BAN
	if x.v.IsGenerated(entity) {
		r.BanIDOrigin = Lieudit
	}
}

// base is what a row shares with its street.
func (x *records) base(s vintage.Street, f vintage.Facet) Record {
	c := x.v.Commune(s.Commune)
	r := Record{Street: string(x.v.Name(s.Name)), Locality: string(x.v.Name(f.LieuDit)), CityCode: c.String(),
		City: string(x.v.Name(c.Name)), AFNOR: string(x.v.Name(s.AFNOR)), Vintage: x.v.Millesime}
	if r.AFNOR == "" {
		r.AFNOR = strings.ToUpper(text.Fold(r.Street))
	}
	if f.Old != vintage.None {
		old := x.v.Place(f.Old)
		r.OldCity, r.OldCityCode = string(x.v.Name(old.Name)), old.String()
	}
	if x.v.CommunePostcodes(s.Commune).Len() > 0 {
		setPostcode(&r, f.Postcode)
	}
	r.CityLine = string(x.v.Name(f.Delivery))
	if f.Delivery == vintage.None {
		r.CityLine = r.City
	}
	x.addCommune(&r)
	return r
}

// onlyPostcode is the postcode that the table has for a commune, if it has only one.
func (x *records) onlyPostcode(code string) string {
	if known, ok := x.table.ByCode(code); ok {
		return known.OnlyPostcode()
	}
	return ""
}

func setPostcode(r *Record, postcode uint32) {
	if postcode != 0 {
		r.Postcode = vintage.FiveDigits(postcode)
	}
}

func setPoint(r *Record, p vintage.Point) {
	at := p.Degrees()
	r.Lon, r.Lat = at.Lon, at.Lat
	r.X, r.Y = float64(p.X)/100, float64(p.Y)/100
}

func cityLine(postcode, name string) string {
	return strings.TrimSpace(postcode + " " + strings.ToUpper(text.Fold(name)))
}

// finish derives fields from the others. A label has the postcode of the row; a row without one takes that of its
// commune, if it has only one.
func (x *records) finish(r *Record) {
	r.Label = joined(r.HouseNumber(), r.Street, r.Postcode, r.City)
	if r.Postcode == "" {
		r.Postcode = x.onlyPostcode(r.CityCode)
	}
	r.CityLine = cityLine(r.Postcode, r.CityLine)
	r.StreetLine = joined(r.Number, strings.ToUpper(r.Rep), r.AFNOR)
	if r.Type == HouseNumber {
		r.ComplementLine = strings.ToUpper(text.Fold(r.Locality))
	}
}

// HouseNumber is the number with its repetition index: 12bis. An index that begins with a digit stands apart, since 10 with the index 5
// is not 105.
func (r *Record) HouseNumber() string {
	if r.Rep != "" && r.Rep[0] >= '0' && r.Rep[0] <= '9' {
		return r.Number + " " + r.Rep
	}
	return r.Number + r.Rep
}

// joined joins non-empty texts with spaces.
func joined(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

// Context is department and region in one line: 48, Lozère, Occitanie.
func (r *Record) Context() string {
	if r.Department.Code == "" {
		return ""
	}
	parts := []string{r.Department.Code, r.Department.Name, r.Region.Name}
	if r.Region.Name == "" || r.Region.Name == r.Department.Name {
		parts = parts[:2]
	}
	return strings.Join(parts, ", ")
}
