package server

import (
	"math"
	"strings"

	"lieudit/queries/address"
	"lieudit/schemas/body"
)

const geoJSON = "geojson"

// collection is a search's answer as GeoJSON.
func collection[A any](found []A, of func(A) body.Feature) body.FeatureCollection {
	return body.FeatureCollection{
		Type: "FeatureCollection", Envelope: body.OK, Features: each(found, of),
		Attribution: "BAN", Licence: "Licence Ouverte 2.0",
	}
}

func feature(r *address.Record, score float64) body.Feature {
	p := body.Properties{
		Label: r.Label, Score: score, HouseNumber: r.Number + r.Rep, ID: r.ID, BanID: known(r.BanID), Name: r.Street,
		PostCode: r.Postcode, CityCode: r.CityCode, OldCityCode: r.OldCityCode, OldCity: r.OldCity, X: r.X, Y: r.Y,
		City: r.City, District: r.District, Context: surroundings(r), Type: string(r.Type), Population: r.Population,
	}
	switch r.Type {
	case address.HouseNumber:
		p.Name, p.Street = p.HouseNumber+" "+r.Street, r.Street
	case address.Municipality:
		p.Name = r.City
	case address.StreetType:
		p.Street = r.Street
	}
	return body.Feature{Type: "Feature", Geometry: body.Point{Type: "Point", Coordinates: []float64{r.Lon, r.Lat}}, Properties: p}
}

// distant is a neighbour, whose score is how near it lies.
func distant(n address.Neighbour) body.Feature {
	f := feature(&n.Record, math.Round(1e4/(1+float64(n.Distance)/1000))/1e4)
	f.Properties.Distance = &n.Distance
	return f
}

// surroundings is department and region in one line.
func surroundings(r *address.Record) string {
	parts := []string{r.Department.Code, r.Department.Name, r.Region.Name}
	if r.Department.Code == "" {
		return ""
	}
	if r.Region.Name == "" || r.Region.Name == r.Department.Name {
		parts = parts[:2]
	}
	return strings.Join(parts, ", ")
}
