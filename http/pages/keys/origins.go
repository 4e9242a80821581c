package keys

import (
	"net/http"
	"net/url"
	"strings"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/http/pages/refusals"
	"lieudit/schemas/body"
	"lieudit/schemas/origin"
	"lieudit/schemas/refusal"
)

// verdicts are what becomes of the origins that were typed.
type verdicts struct {
	Entries []verdict
	List    string // what is wrong with the list as a whole
}

// verdict is what becomes of one origin, in the language of the reader.
type verdict struct {
	body.OriginVerdict
	Text    string // why it is refused
	Caution string // why it is probably not what is meant
}

// IsRewritten reports whether another form of the origin is kept than the one that was typed.
func (v verdict) IsRewritten() bool { return v.IsValid && v.Kept != v.Typed }

// maxJudged is how many entries are judged at once.
const maxJudged = 100

// judge asks for the verdicts on origins.
func judge(q *page.Request, typed []string) (*verdicts, error) {
	typed = typed[:min(len(typed), maxJudged)]
	var found body.OriginVerdicts
	if err := q.Do(http.MethodPost, page.Path("/accounts/%s/origins:check", q.Vars["account"]), body.CheckOrigins{Origins: typed}, &found); err != nil {
		return nil, err
	}
	all := &verdicts{}
	for _, v := range found.Results {
		all.Entries = append(all.Entries, newVerdict(q.Print, v))
	}
	if found.Refusal != nil && found.Refusal.Code == string(refusal.TooManyOrigins) {
		all.List = explain(q.Print, found.Refusal)
	}
	return all, nil
}

// newVerdict explains a verdict. In French it has the words of the refusal; in English it says the same.
func newVerdict(p i18n.Printer, v body.OriginVerdict) verdict {
	shown := verdict{OriginVerdict: v, Text: v.Message, Caution: v.Warning}
	if p.Lang == i18n.English {
		shown.Text = faultTexts[origin.Fault(v.Fault)]
		if v.Warning != "" {
			shown.Caution = "It covers every domain registered under " + strings.TrimPrefix(v.Kept, "https://*.") + ", which belong to different people."
		}
	}
	return shown
}

// explain says a refusal in the language of the reader.
func explain(p i18n.Printer, r *body.OriginRefusal) string {
	if advice, ok := refusals.For(refusal.Code(r.Code)); ok && p.Lang == i18n.English {
		return advice.What().EN + "."
	}
	return r.Message
}

// faultTexts are the reasons for which an origin is refused, in English. The French ones are part of the refusals.
var faultTexts = map[origin.Fault]string{
	origin.Missing:         "It is missing.",
	origin.TooLong:         "It is too long.",
	origin.NotHTTPS:        "It must begin with https://.",
	origin.HasUser:         "A user name is not allowed.",
	origin.HasPath:         "Only the domain is allowed, without a path or a slash at the end.",
	origin.HasQuery:        "Only the domain is allowed, without parameters.",
	origin.HasFragment:     "Only the domain is allowed, without a fragment.",
	origin.IsAddress:       "An IP address is not allowed.",
	origin.HasPort:         "A port is not allowed.",
	origin.StarMisplaced:   "The star stands at the head only, alone, as in https://*.example.fr.",
	origin.HostMissing:     "The domain is missing.",
	origin.EndsInDot:       "A dot at the end is not allowed.",
	origin.HostTooLong:     "The domain is too long.",
	origin.HostMalformed:   "The domain name is not valid.",
	origin.StarOverOneName: "The star must be followed by at least two labels, as in https://*.example.fr.",
	origin.OneName:         "The domain needs at least two labels, as in https://example.fr.",
}

// judgeTyped answers the script with the verdicts on what is being typed.
func judgeTyped(q *page.Request) (page.View, error) {
	form := &page.Form{Values: q.URL.Query()}
	found, err := judge(q, form.Lines("origins"))
	return page.View{Template: "verdicts", IsFragment: true, Data: found}, err
}

// originsPage is the data of origins.html.
type originsPage struct {
	keyPage
	Form     *page.Form
	Verdict  string // path of the verdicts
	Verdicts *verdicts
	Tested   string // what was typed in the tester
	Test     *originTest
}

// originTest is whether a page is admitted, in the language of the reader.
type originTest struct {
	body.OriginTest
	Verdict *verdict // on declaring the origin, if it is not admitted
}

func showOrigins(q *page.Request) (page.View, error) {
	return viewOrigins(q, nil, http.StatusOK)
}

// viewOrigins shows the origins of a key, or those that were typed, and the tester with its result.
func viewOrigins(q *page.Request, form *page.Form, status int) (page.View, error) {
	data := originsPage{Form: form, Verdict: listPath(q) + "/verdict"}
	var err error
	if data.keyPage, err = loadKeyPage(q); err != nil {
		return page.View{}, err
	}
	if !data.Key.IsPublishable() || !data.MayChange {
		return page.Redirect(data.Path)
	}
	if form == nil {
		data.Form = &page.Form{Values: url.Values{"origins": {strings.Join(data.Key.Origins, "\n")}}}
	}
	if data.Verdicts, err = judge(q, data.Form.Lines("origins")); err != nil {
		return page.View{}, err
	}
	if query := q.URL.Query(); query.Has("page") {
		data.Tested = query.Get("page")
		if data.Test, err = tryOrigin(q, data.Tested); err != nil {
			return page.View{}, err
		}
	}
	return page.View{Status: status, Template: "origins.html", Title: q.T("Origines de la clé", "Origins of the key"), Current: data.List, Data: data}, nil
}

// changeOrigins replaces the origins of the key.
func changeOrigins(q *page.Request) (page.View, error) {
	form := q.Form()
	if err := q.Do(http.MethodPut, keyOperation(q, q.Vars["key"], "/accounts/%s/keys/%s/origins"), body.ChangeOrigins{Origins: form.Lines("origins")}, nil); err != nil {
		status, ok := form.Refuse(q, err, map[refusal.Code]string{refusal.OriginInvalid: "origins", refusal.TooManyOrigins: "origins"})
		if !ok {
			return page.View{}, err
		}
		return viewOrigins(q, form, status)
	}
	return page.Redirect(keyPath(q, q.Vars["key"], "") + "?fait=origines-changees")
}

// testTyped answers the script with whether the page that is being typed is admitted.
func testTyped(q *page.Request) (page.View, error) {
	found, err := tryOrigin(q, q.URL.Query().Get("page"))
	return page.View{Template: "test", IsFragment: true, Data: found}, err
}

// tryOrigin asks whether a page is admitted. Nobody asks about a page without an address.
func tryOrigin(q *page.Request, typed string) (*originTest, error) {
	if strings.TrimSpace(typed) == "" {
		return nil, nil
	}
	var found originTest
	if err := q.Do(http.MethodPost, keyOperation(q, q.Vars["key"], "/accounts/%s/keys/%s/origins:test"), body.TestOrigin{Origin: typed}, &found.OriginTest); err != nil {
		return nil, err
	}
	if found.IsAdmitted {
		return &found, nil
	}
	verdicts, err := judge(q, []string{found.Origin})
	if err != nil {
		return nil, err
	}
	found.Verdict = &verdicts.Entries[0]
	return &found, nil
}
