package locations

import (
	"net/url"
	"regexp"
	"strings"
)

// Fault is a member of a content that breaks a rule, and the rule in a few words.
type Fault struct{ Member, Rule string }

// FindFaults returns the members that break rules which no tag expresses. Contents on the log may be older than these rules:
// an unchanged member of a site is not the caller's fault (HasSameMember).
func (c Content) FindFaults() (faults []Fault) {
	if c.Phone != "" && !IsPhone(c.Phone) {
		faults = append(faults, Fault{"telephone", "a telephone number is E.164 such as +33466491100, or French digits such as 04 66 49 11 00"})
	}
	if c.Email != "" && !IsEmail(c.Email) {
		faults = append(faults, Fault{"email", "an email address is such as accueil@exemple.fr"})
	}
	if c.Website != "" && !IsWebsite(c.Website) {
		faults = append(faults, Fault{"site_web", "a website is a URL such as https://exemple.fr, with http or https"})
	}
	if _, err := ParseHours(c.Hours); err != nil {
		faults = append(faults, Fault{"horaires", err.Error()})
	}
	return faults
}

// HasSameMember reports whether two contents have the same value of a member that a Fault names. JSON is compared by its
// meaning.
func (c Content) HasSameMember(member string, o Content) bool {
	switch member {
	case "telephone":
		return c.Phone == o.Phone
	case "email":
		return c.Email == o.Email
	case "site_web":
		return c.Website == o.Website
	}
	return canonicalJSON(c.Hours) == canonicalJSON(o.Hours)
}

// phoneForms are E.164 (at most 15 digits after the sign), the ten digits of a French number, and the short French numbers.
var phoneForms = regexp.MustCompile(`^(\+[1-9][0-9]{5,14}|0[1-9][0-9]{8}|[1-9][0-9]{1,3}|118[0-9]{3})$`)

// phoneSigns are the characters that people group digits with.
var phoneSigns = strings.NewReplacer(" ", "", "\u00a0", "", "\u202f", "", ".", "", "-", "")

// IsPhone reports whether a text is a telephone number: E.164 or French digits. Digits may be grouped by spaces, dots and
// hyphens.
func IsPhone(text string) bool { return phoneForms.MatchString(phoneSigns.Replace(text)) }

var emailForm = regexp.MustCompile(`^[^\s@<>()\[\],;:"\\]+@[^\s@<>()\[\],;:"\\.]+(\.[^\s@<>()\[\],;:"\\.]+)+$`)

// IsEmail reports whether a text is one email address without a display name. It does not look up the domain.
func IsEmail(text string) bool { return emailForm.MatchString(text) }

// IsWebsite reports whether a text is a URL with the scheme http or https and a host.
func IsWebsite(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && !strings.ContainsAny(text, " \t\r\n")
}
