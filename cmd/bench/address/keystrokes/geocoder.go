package keystrokes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"lieudit/queries/address"
)

// suggestion is one answer of a geocoder.
type suggestion struct{ id, label string }

// completer asks a geocoder for what an unfinished text may mean. The bias may be nil.
type completer func(ctx context.Context, text string, bias *address.Position) ([]suggestion, error)

// geocoder is one of those that are asked.
type geocoder struct {
	name     string
	complete completer
}

// limit is how many suggestions are asked for.
const limit = 5

// engineCompleter asks the engine.
func engineCompleter(engine *address.Engine) completer {
	return func(ctx context.Context, text string, bias *address.Position) (all []suggestion, err error) {
		found, err := engine.Complete(ctx, address.Query{Text: text, Limit: limit, Bias: bias})
		for _, s := range found {
			all = append(all, suggestion{s.ID, s.Label})
		}
		return all, err
	}
}

// peerCompleter asks another geocoder over HTTP, in the interface of addok and of the API Adresse.
func peerCompleter(base string) completer {
	return func(ctx context.Context, text string, bias *address.Position) ([]suggestion, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, peerURL(base, text, bias), nil)
		if err != nil {
			return nil, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, err
		}
		found, err := readFeatures(response)
		return found, errors.Join(err, response.Body.Close())
	}
}

// peerURL is the URL of one question.
func peerURL(base, text string, bias *address.Position) string {
	query := url.Values{"q": {text}, "autocomplete": {"1"}, "limit": {strconv.Itoa(limit)}}
	if bias != nil {
		query.Set("lon", strconv.FormatFloat(bias.Lon, 'f', 6, 64))
		query.Set("lat", strconv.FormatFloat(bias.Lat, 'f', 6, 64))
	}
	return strings.TrimSuffix(base, "/") + "/search/?" + query.Encode()
}

// readFeatures reads the suggestions of a GeoJSON answer.
func readFeatures(response *http.Response) (all []suggestion, err error) {
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the peer answers %s", response.Status)
	}
	var body struct {
		Features []struct{ Properties struct{ ID, Label string } }
	}
	err = json.NewDecoder(response.Body).Decode(&body)
	for _, f := range body.Features {
		all = append(all, suggestion{f.Properties.ID, f.Properties.Label})
	}
	return all, err
}
