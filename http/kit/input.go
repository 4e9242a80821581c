package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"lieudit/http/problem"
	"lieudit/schemas/body"
)

// Each violation of an answer has an input: the object that holds the field, as the client sent it. A decoder sets it. An operation
// that finds a broken rule later leaves it nil, and the endpoint sets it from the request:
//
//	decode ── keepBody ──► Operation ── violations without input ── fillInputs ◄── inputOf: query, path or body

// maxKeptBody is the largest body that is kept while its operation runs. A violation of a larger one, which the decoder did not find,
// has an empty input.
const maxKeptBody = 64 << 10

// keepBody lets inputOf read a body again after it was read to its end.
func keepBody(r *http.Request, text []byte) {
	if len(text) <= maxKeptBody {
		r.Body = io.NopCloser(bytes.NewReader(text))
	}
}

// fillInputs sets the input of the violations in err that have none. inputOf returns the input for a location in the request. Any
// other error is returned unchanged.
func fillInputs(err error, inputOf func(loc []any) any) error {
	p, isProblem := errors.AsType[problem.Problem](err)
	failure, hasRules := p.Body.(body.RuleFailure)
	if !isProblem || !hasRules {
		return err
	}
	failure.Detail = slices.Clone(failure.Detail)
	for i := range failure.Detail {
		if v := &failure.Detail[i]; v.Input == nil {
			v.Input = inputOf(v.Loc)
		}
	}
	p.Body = failure
	return p
}

// FillFormInputs sets the input of the violations in an error that have none: the fields of a form, as in DecodeForm.
func FillFormInputs(err error, fields url.Values) error {
	return fillInputs(err, func(loc []any) any { return echoParams(fields, len(fields.Encode()) > maxEchoedInput, loc[1:]) })
}

// fillRequestInputs sets the input of the violations that an operation found.
func fillRequestInputs(err error, r *http.Request, vars map[string]string) error {
	if err == nil {
		return nil
	}
	var text []byte // of the body, once it is needed
	return fillInputs(err, func(loc []any) any {
		switch loc[0] {
		case "path":
			return vars
		case "query":
			return echoParams(r.URL.Query(), len(r.URL.RawQuery) > maxEchoedInput, loc[1:])
		case "body":
			if text == nil {
				text, _ = io.ReadAll(io.LimitReader(r.Body, maxKeptBody)) // the decoder left it in memory, or nothing
			}
			return HoldingObject(bytes.TrimPrefix(text, byteOrderMark), loc[1:])
		}
		return map[string]any{}
	})
}

// HoldingObject returns the innermost object of a JSON text on the path place, a list of names and indexes. If that object is large,
// it returns an object with only the member on the path. It returns an empty object if the member is large too or absent, or if the
// text is not JSON.
func HoldingObject(text json.RawMessage, place []any) any {
	holder, name := findHolder(text, place)
	members := objectMembersOf(holder)
	if members != nil && len(holder) <= maxEchoedInput {
		return holder
	}
	if member, ok := members[name]; ok && len(member) <= maxEchoedInput {
		return map[string]json.RawMessage{name: member}
	}
	return map[string]json.RawMessage{}
}

// findHolder follows the path place as far as the text has it. name is the holder's member on the path.
func findHolder(text json.RawMessage, place []any) (holder json.RawMessage, name string) {
	for _, segment := range place {
		switch segment := segment.(type) {
		case string:
			members := objectMembersOf(text)
			if members == nil {
				return holder, name
			}
			holder, name, text = text, segment, members[segment]
		case int:
			var items []json.RawMessage
			if json.Unmarshal(text, &items) != nil || segment >= len(items) {
				return holder, name
			}
			text = items[segment]
		}
	}
	if _, isItem := lastSegment(place).(int); (isItem || len(place) == 0) && objectMembersOf(text) != nil {
		return text, "" // a rule over several members of an object
	}
	return holder, name
}

// lastSegment returns the last segment of a path, or nil if the path is empty.
func lastSegment(place []any) any {
	if len(place) == 0 {
		return nil
	}
	return place[len(place)-1]
}

// objectMembersOf returns the members of an object, or nil for any other value.
func objectMembersOf(text json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil
	}
	return members
}

// echoParams returns the input of a violation of parameters: all of them or, if they are large together, only the parameter that loc
// names, if that is small.
func echoParams(params url.Values, isLarge bool, loc []any) map[string]any {
	if !isLarge {
		return paramsAsObject(params, maps.Keys(params))
	}
	if len(loc) > 0 {
		if name, ok := loc[0].(string); ok && len(strings.Join(params[name], ",")) <= maxEchoedInput {
			return paramsAsObject(params, slices.Values([]string{name}))
		}
	}
	return map[string]any{}
}
