// Package addok asks another geocoder through the API of addok and of the former API Adresse, so that the benches put the same questions to
// both. The peer must be filled with the same rows under the same ids.
package addok

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"lieudit/schemas/geo"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Query is one question.
type Query struct {
	Text        string
	Limit       int
	IsCompleted bool       // the text is the beginning of an address
	Bias        *geo.Point // nil: none
}

// Answer is one of the addresses found.
type Answer struct {
	ID, Label, Type string
	HouseNumber     string // with its repetition index: 12bis
	Score           float64
}

// Peer is a geocoder at a URL.
type Peer struct{ base string }

// New returns the Peer at a URL such as http://127.0.0.1:7878.
func New(base string) *Peer { return &Peer{strings.TrimSuffix(base, "/")} }

// Search asks a question. A text that the peer refuses as too short or too long has no answers.
func (p *Peer) Search(ctx context.Context, q Query) (found []Answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url(q), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return nil, nil
	default:
		return nil, fmt.Errorf("the peer answers %s", response.Status)
	}
	return readFeatures(response)
}

// url returns the URL of one question. addok takes every text for an unfinished one, unless told otherwise.
func (p *Peer) url(q Query) string {
	query := url.Values{"q": {q.Text}, "autocomplete": {"0"}, "limit": {strconv.Itoa(q.Limit)}}
	if q.IsCompleted {
		query.Set("autocomplete", "1")
	}
	if q.Bias != nil {
		query.Set("lon", strconv.FormatFloat(q.Bias.Lon, 'f', 6, 64))
		query.Set("lat", strconv.FormatFloat(q.Bias.Lat, 'f', 6, 64))
	}
	return p.base + "/search/?" + query.Encode()
}

// readFeatures reads the addresses of a GeoJSON answer.
func readFeatures(response *http.Response) (all []Answer, err error) {
	var body struct {
		Features []struct {
			Properties struct {
				ID, Label, Type, HouseNumber string
				Score                        float64
			}
		}
	}
	err = json.NewDecoder(response.Body).Decode(&body)
	for _, f := range body.Features {
		all = append(all, Answer(f.Properties))
	}
	return all, err
}
