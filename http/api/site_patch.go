package api

import (
	"encoding/json"
	"fmt"
	"strings"

	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/locations"
)

// The limits of horaires and proprietes, which the result of a merge must meet. They equal those in the tags of locations.Content, which
// hold for a whole site.
const (
	maxFreeJSONBytes = 16 << 10 // of horaires and of proprietes
	maxProperties    = 100      // members of proprietes
)

// sitePatch is a merge patch of the content of a site.
type sitePatch body.PatchSite

// apply is the content with the patch merged in (RFC 7396), or the rules that the result breaks. A command calls it with the
// content that the log holds, perhaps several times, so it changes nothing that c refers to.
func (p sitePatch) apply(c locations.Content) (locations.Content, error) {
	patchText(p.Name, &c.Name)
	patchText(p.IDBan, &c.IDBan)
	patchText(p.Phone, &c.Phone)
	patchText(p.Email, &c.Email)
	patchText(p.Website, &c.Website)
	if p.Lat.IsGiven {
		c.Lat = p.Lat.Value
	}
	if p.Lon.IsGiven {
		c.Lon = p.Lon.Value
	}
	if p.Tags.IsGiven {
		c.Tags = nil
		if p.Tags.Value != nil {
			c.Tags = *p.Tags.Value
		}
	}
	c.Address = patchAddress(p.Address, c.Address)
	var err error
	if c.Hours, err = patchFreeJSON(p.Hours, c.Hours); err != nil {
		return c, err
	}
	if c.Properties, err = patchFreeJSON(p.Properties, c.Properties); err != nil {
		return c, err
	}
	return c, p.checkResult(c)
}

// patchText leaves a text as it is where the member was not sent, clears it for null, and otherwise replaces it.
func patchText(change shape.Nullable[string], into *string) {
	if !change.IsGiven {
		return
	}
	*into = ""
	if change.Value != nil {
		*into = *change.Value
	}
}

// patchAddress merges the parts of an address. An address that has no part left is none.
func patchAddress(change shape.Nullable[body.PatchAddress], current *locations.SiteAddress) *locations.SiteAddress {
	if !change.IsGiven {
		return current
	}
	if change.Value == nil {
		return nil
	}
	var a locations.SiteAddress
	if current != nil {
		a = *current
	}
	patchText(change.Value.Line1, &a.Line1)
	patchText(change.Value.Line2, &a.Line2)
	patchText(change.Value.PostalCode, &a.PostalCode)
	patchText(change.Value.City, &a.City)
	patchText(change.Value.InseeCode, &a.InseeCode)
	patchText(change.Value.Country, &a.Country)
	if a == (locations.SiteAddress{}) {
		return nil
	}
	return &a
}

// patchFreeJSON merges free JSON: what is left out stays, null clears.
func patchFreeJSON(change shape.Nullable[json.RawMessage], current json.RawMessage) (json.RawMessage, error) {
	switch {
	case !change.IsGiven:
		return current, nil
	case change.Value == nil:
		return nil, nil
	}
	return mergePatch(current, *change.Value)
}

// mergePatch is MergePatch of RFC 7396, section 2. evanphx/json-patch does not serve: its MergePatch drops null members of
// objects inside arrays, which the RFC keeps, and escapes HTML.
func mergePatch(target, patch json.RawMessage) (json.RawMessage, error) {
	changes := objectMembers(patch)
	if changes == nil {
		return patch, nil
	}
	object := objectMembers(target)
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	for name, change := range changes {
		if string(change) == "null" {
			delete(object, name)
			continue
		}
		value, err := mergePatch(object[name], change)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return kit.MarshalJSON(object)
}

// objectMembers are the members of an object; nil for any other value. The first bytes tell an object from the rest, so that a
// long list is not parsed to find that out; JSON that was decoded before has no spaces before its value.
func objectMembers(text json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if !strings.HasPrefix(strings.TrimLeft(string(text[:min(len(text), 64)]), " \t\r\n"), "{") || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

// checkResult checks the rules that the result of a merge can break though the patch keeps them.
func (p sitePatch) checkResult(c locations.Content) error {
	var all []problem.Violation
	addViolation := func(rule string, at ...any) {
		all = append(all, problem.Violation{Type: "value_error", Loc: append([]any{"body"}, at...), Msg: "Value error, " + rule})
	}
	if (c.Lat == nil) != (c.Lon == nil) {
		addViolation("lat and lon go together")
	}
	if len(c.Hours) > maxFreeJSONBytes {
		addViolation(fmt.Sprintf("at most %d bytes of JSON are kept", maxFreeJSONBytes), "horaires")
	}
	if len(c.Properties) > maxFreeJSONBytes {
		addViolation(fmt.Sprintf("at most %d bytes of JSON are kept", maxFreeJSONBytes), "proprietes")
	}
	if n := len(objectMembers(c.Properties)); n > maxProperties {
		addViolation(fmt.Sprintf("at most %d members are kept, not %d", maxProperties, n), "proprietes")
	}
	if len(all) > 0 {
		return problem.Violations(all...)
	}
	return nil
}
