package input

import "encoding/json"

// member is a member of an object as it was sent.
type member struct {
	name string
	text json.RawMessage
}

// given is the members of an object.
type given []member

// text is the text of a member, nil when it was not sent.
func (g given) text(name string) json.RawMessage {
	for i := range g {
		if g[i].name == name {
			return g[i].text
		}
	}
	return nil
}

// part is the member that a place goes through, if there is one and it is small.
func (g given) part(loc []any, depth int) map[string]json.RawMessage {
	one := make(map[string]json.RawMessage)
	if depth >= len(loc) {
		return one
	}
	if name, ok := loc[depth].(string); ok {
		if text := g.text(name); text != nil && len(text) <= maxInput {
			one[name] = text
		}
	}
	return one
}

func quoted(text string) json.RawMessage {
	plain, _ := json.Marshal(text) // a string always encodes
	return plain
}
