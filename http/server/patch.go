package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/site"
)

const (
	maxFree    = 16 << 10 // bytes of free JSON
	maxMembers = 50       // of what the customer adds
)

// patch is a merge patch of what a customer says of a site.
type patch body.PatchSite

// apply is the content with the patch merged in (RFC 7396), or the rules that what results breaks.
func (p patch) apply(c site.Content) (site.Content, error) {
	text(p.Name, &c.Name)
	text(p.IDBan, &c.IDBan)
	text(p.Phone, &c.Phone)
	text(p.Email, &c.Email)
	text(p.Website, &c.Website)
	if p.Lat.Given {
		c.Lat = p.Lat.Value
	}
	if p.Lon.Given {
		c.Lon = p.Lon.Value
	}
	if p.Tags.Given {
		c.Tags = nil
		if p.Tags.Value != nil {
			c.Tags = *p.Tags.Value
		}
	}
	c.Address = patched(p.Address, c.Address)
	var err error
	if c.Hours, err = free(p.Hours, c.Hours); err != nil {
		return c, err
	}
	if c.Properties, err = free(p.Properties, c.Properties); err != nil {
		return c, err
	}
	return c, p.check(c)
}

// text is one fact: left as it is, said anew, or taken away.
func text(told shape.Nullable[string], into *string) {
	if !told.Given {
		return
	}
	*into = ""
	if told.Value != nil {
		*into = *told.Value
	}
}

func patched(told shape.Nullable[body.PatchAddress], now *site.Address) *site.Address {
	if !told.Given {
		return now
	}
	if told.Value == nil {
		return nil
	}
	var a site.Address
	if now != nil {
		a = *now
	}
	text(told.Value.Line1, &a.Line1)
	text(told.Value.Line2, &a.Line2)
	text(told.Value.PostalCode, &a.PostalCode)
	text(told.Value.City, &a.City)
	text(told.Value.InseeCode, &a.InseeCode)
	text(told.Value.Country, &a.Country)
	if a == (site.Address{}) {
		return nil
	}
	return &a
}

func free(told shape.Nullable[json.RawMessage], now json.RawMessage) (json.RawMessage, error) {
	switch {
	case !told.Given:
		return now, nil
	case told.Value == nil:
		return nil, nil
	}
	return merged(now, *told.Value)
}

// merged is MergePatch of RFC 7396, section 2.
func merged(target, patch json.RawMessage) (json.RawMessage, error) {
	changes := members(patch)
	if changes == nil {
		return patch, nil
	}
	object := members(target)
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(object, name)
			continue
		}
		value, err := merged(object[name], change)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(object)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// members are those of an object, nil for any other value.
func members(text json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if !strings.HasPrefix(strings.TrimLeft(string(text[:min(len(text), 64)]), " \t\r\n"), "{") || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// check holds what results to the rules that no part of the patch could break alone.
func (p patch) check(c site.Content) error {
	var all []problem.Violation
	broken := func(rule string, input map[string]any, at ...any) {
		all = append(all, problem.Violation{Type: "value_error", Loc: append([]any{"body"}, at...), Msg: "Value error, " + rule, Input: input})
	}
	if (c.Lat == nil) != (c.Lon == nil) {
		broken("lat and lon go together", map[string]any{"lat": p.Lat, "lon": p.Lon})
	}
	if len(c.Hours) > maxFree {
		broken(fmt.Sprintf("at most %d bytes of JSON are kept", maxFree), map[string]any{}, "horaires")
	}
	if len(c.Properties) > maxFree {
		broken(fmt.Sprintf("at most %d bytes of JSON are kept", maxFree), map[string]any{}, "proprietes")
	}
	if n := len(members(c.Properties)); n > maxMembers {
		broken(fmt.Sprintf("at most %d members are kept, not %d", maxMembers, n), map[string]any{}, "proprietes")
	}
	if len(all) > 0 {
		return problem.Violations(all...)
	}
	return nil
}
