package sitefile

import (
	"encoding/json"

	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/schemas/locations"
)

// KeepUncomputed fills the columns of a spreadsheet whose formulas have no value with the referential's values for each site. Programs
// write such formulas and leave computing them to a spreadsheet program: the cells look empty, and a sync would clear the fields.
func (i *Import) KeepUncomputed(known map[string]Site) {
	for n := range i.Sites {
		s := &i.Sites[n]
		stored, ok := known[s.ExternalID]
		if !ok {
			continue
		}
		for _, column := range s.unknown {
			if column < len(i.Mapping.Targets) {
				s.keep(&stored, i.Mapping.Targets[column])
			}
		}
	}
}

// keep copies the stored value of a column.
func (s *Site) keep(stored *Site, t mapping.Target) {
	from, to := &stored.Content, &s.Content
	switch t.Field {
	case "":
		if t.Property != "" {
			to.Properties = keepMember(from.Properties, to.Properties, t.Property)
		}
	case mapping.Name:
		to.Name = from.Name
	case mapping.IDBan:
		to.IDBan = from.IDBan
	case mapping.Lat, mapping.Lon, mapping.Pair, mapping.Shape, mapping.X, mapping.Y:
		if !stored.IsGeocoded && to.Lat == nil {
			to.Lat, to.Lon = from.Lat, from.Lon
		}
	case mapping.Hours, mapping.Monday, mapping.Tuesday, mapping.Wednesday, mapping.Thursday, mapping.Friday, mapping.Saturday, mapping.Sunday:
		to.Hours = from.Hours
	case mapping.Phone:
		to.Phone = from.Phone
	case mapping.Email:
		to.Email = from.Email
	case mapping.Website:
		to.Website = from.Website
	case mapping.Tags:
		to.Tags = from.Tags
	case mapping.Properties:
		to.Properties = from.Properties
	default:
		s.keepAddressPart(stored, t.Field)
	}
}

// keepAddressPart copies the part of an address that a column is or belongs to.
func (s *Site) keepAddressPart(stored *Site, f mapping.Field) {
	from := stored.Content.Address
	if from == nil {
		return
	}
	to := &locations.SiteAddress{}
	if s.Content.Address != nil {
		to = s.Content.Address
	}
	switch f {
	case mapping.Line1, mapping.HouseNumber, mapping.Suffix, mapping.StreetType, mapping.StreetName:
		to.Line1 = from.Line1
	case mapping.Line2:
		to.Line2 = from.Line2
	case mapping.PostalCode:
		to.PostalCode = from.PostalCode
	case mapping.City:
		to.City = from.City
	case mapping.PostalTown:
		to.PostalCode, to.City = from.PostalCode, from.City
	case mapping.InseeCode:
		to.InseeCode = from.InseeCode
	case mapping.Country:
		to.Country = from.Country
	}
	if *to != (locations.SiteAddress{}) {
		s.Content.Address = to
	}
}

// keepMember adds a member of one object to another that lacks it, in the order of the first, so that equal objects stay equal content.
func keepMember(from, to json.RawMessage, key string) json.RawMessage {
	var old, have, kept properties
	old.merge(record.Value{JSON: from})
	have.merge(record.Value{JSON: to})
	if _, isThere := have.values[key]; isThere || old.values[key] == nil {
		return to
	}
	for _, k := range old.keys {
		if value, isThere := have.values[k]; isThere {
			kept.setRaw(k, value)
		} else if k == key {
			kept.setRaw(k, old.values[k])
		}
	}
	for _, k := range have.keys {
		if _, isThere := kept.values[k]; !isThere {
			kept.setRaw(k, have.values[k])
		}
	}
	return kept.marshal()
}
