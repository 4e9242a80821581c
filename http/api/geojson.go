package api

import (
	"math"

	"lieudit/queries/address"
	"lieudit/schemas/body"
)

const geoJSON = "geojson"

// toFeatureCollection is a search's answer as GeoJSON.
func toFeatureCollection[A any](found []A, toFeature func(A) body.Feature) body.FeatureCollection {
	return body.FeatureCollection{
		Type: "FeatureCollection", Envelope: body.OKEnvelope, Features: mapSlice(found, toFeature),
		Attribution: "BAN", Licence: "Licence Ouverte 2.0",
	}
}

func toFeature(r *address.Record, score float64) body.Feature {
	p := body.Properties{
		Label: r.Label, Score: score, HouseNumber: r.Number + r.Rep, ID: r.ID, BanID: withoutNilBanID(r.BanID), Name: r.Street,
		PostCode: r.Postcode, CityCode: r.CityCode, OldCityCode: r.OldCityCode, OldCity: r.OldCity, X: r.X, Y: r.Y,
		City: r.City, District: r.District, Context: r.Context(), Type: string(r.Type), Population: r.Population,
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

// toNeighbourFeature is a neighbour, whose score is how near it lies.
func toNeighbourFeature(n address.Neighbour) body.Feature {
	f := toFeature(&n.Record, math.Round(1e4/(1+float64(n.Distance)/1000))/1e4)
	f.Properties.Distance = &n.Distance
	return f
}
