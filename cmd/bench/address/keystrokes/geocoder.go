package keystrokes

import (
	"context"

	"lieudit/cmd/bench/address/addok"
	"lieudit/queries/address"
	"lieudit/schemas/geo"
)

// suggestion is one answer of a geocoder.
type suggestion struct{ id, label string }

// completer asks a geocoder for completions of an unfinished text. The bias may be nil.
type completer func(ctx context.Context, text string, bias *geo.Point) ([]suggestion, error)

// geocoder is a geocoder under test.
type geocoder struct {
	name     string
	complete completer
}

// limit is the number of suggestions requested.
const limit = 5

// engineCompleter asks the engine.
func engineCompleter(engine *address.Engine) completer {
	return func(ctx context.Context, text string, bias *geo.Point) (all []suggestion, err error) {
		found, err := engine.Complete(ctx, address.Query{Text: text, Limit: limit, Bias: bias})
		for _, s := range found {
			all = append(all, suggestion{s.ID, s.Label})
		}
		return all, err
	}
}

// peerCompleter asks another geocoder.
func peerCompleter(base string) completer {
	peer := addok.New(base)
	return func(ctx context.Context, text string, bias *geo.Point) (all []suggestion, err error) {
		found, err := peer.Search(ctx, addok.Query{Text: text, Limit: limit, IsCompleted: true, Bias: bias})
		for _, a := range found {
			all = append(all, suggestion{a.ID, a.Label})
		}
		return all, err
	}
}
