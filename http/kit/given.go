package kit

import "encoding/json"

// rawMember is a rawMember of an object as it was sent.
type rawMember struct {
	name string
	text json.RawMessage
}

// rawMembers is the members of an object.
type rawMembers []rawMember

// find is the text of a member, nil when it was not sent.
func (g rawMembers) find(name string) json.RawMessage {
	for i := range g {
		if g[i].name == name {
			return g[i].text
		}
	}
	return nil
}

// smallMemberAt is the member that a place goes through, if there is one and it is small.
func (g rawMembers) smallMemberAt(loc []any, depth int) map[string]json.RawMessage {
	found := make(map[string]json.RawMessage)
	if depth >= len(loc) {
		return found
	}
	if name, ok := loc[depth].(string); ok {
		if text := g.find(name); text != nil && len(text) <= maxEchoedInput {
			found[name] = text
		}
	}
	return found
}

func quoteJSON(text string) json.RawMessage {
	encoded, _ := json.Marshal(text) // a string always encodes
	return encoded
}
