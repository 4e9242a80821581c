package browsertest

import (
	"net/http"
	"time"
)

// protocolCookie is a cookie in Chromium's form.
type protocolCookie struct {
	Name     string  `json:"name"`
	Value    string  `json:"value"`
	Domain   string  `json:"domain,omitempty"`
	Path     string  `json:"path,omitempty"`
	URL      string  `json:"url,omitempty"`
	Expires  float64 `json:"expires,omitempty"` // in seconds since 1970; -1 for the end of the browser
	HTTPOnly bool    `json:"httpOnly"`
	Secure   bool    `json:"secure"`
	SameSite string  `json:"sameSite,omitempty"`
}

var sameSites = map[string]http.SameSite{"Strict": http.SameSiteStrictMode, "Lax": http.SameSiteLaxMode, "None": http.SameSiteNoneMode}

// Cookies are the cookies of all sites, those that no script can read included.
func (c *Context) Cookies() (all []*http.Cookie) {
	c.t.Helper()
	var answer struct{ Cookies []protocolCookie }
	c.require("Storage.getCookies", object{"browserContextId": c.id}, &answer)
	for _, p := range answer.Cookies {
		cookie := &http.Cookie{
			Name: p.Name, Value: p.Value, Domain: p.Domain, Path: p.Path, HttpOnly: p.HTTPOnly, Secure: p.Secure, SameSite: sameSites[p.SameSite],
		}
		if p.Expires > 0 {
			cookie.Expires = time.Unix(int64(p.Expires), 0)
		}
		all = append(all, cookie)
	}
	return all
}

// SetCookie sets a cookie as an answer from a URL would. It fails the test if Chromium refuses such a cookie.
func (c *Context) SetCookie(url string, cookie *http.Cookie) {
	c.t.Helper()
	p := protocolCookie{
		Name: cookie.Name, Value: cookie.Value, Domain: cookie.Domain, Path: cookie.Path, URL: url, HTTPOnly: cookie.HttpOnly, Secure: cookie.Secure,
	}
	for name, s := range sameSites {
		if s == cookie.SameSite {
			p.SameSite = name
		}
	}
	if !cookie.Expires.IsZero() {
		p.Expires = float64(cookie.Expires.Unix())
	}
	c.require("Storage.setCookies", object{"browserContextId": c.id, "cookies": []protocolCookie{p}}, nil)
}
