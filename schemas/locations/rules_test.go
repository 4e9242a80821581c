package locations_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lieudit/schemas/locations"
)

func TestTelephoneNumbersAreE164OrFrench(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"+33466491100": true, "+33 4 66 49 11 00": true, "04 66 49 11 00": true, "04.66.49.11.00": true, "0466491100": true, "04-66-49-11-00": true,
		"3949": true, "15": true, "118218": true, "+32 2 555 12 12": true, "0800 123 456": true, "04\u00a066\u202f49\u00a011\u00a000": true,
		"": false, "4": false, "466491100": false, "0033466491100": false, "+0466491100": false, "04 66 49 11 00 ou 06 12 34 56 78": false,
		"Tél : 04 66 49 11 00": false, "+33(0)466491100": false, "00 00 00 00 00": false, "+3346649110012345": false, "12345": false,
	} {
		if got := locations.IsPhone(text); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestEmailAddressesAndWebsitesHaveTheirForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"a@b.fr": true, "a.b+c@d-e.co.uk": true, "é@ü.fr": true,
		"a@b": false, "a b@c.fr": false, "a@b.fr, c@d.fr": false, "A <a@b.fr>": false, "@b.fr": false, "a@.fr": false, "a@b.": false, "mailto:a@b.fr": false,
	} {
		if got := locations.IsEmail(text); got != want {
			t.Errorf("email %q: got %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]bool{
		"https://exemple.fr": true, "http://exemple.fr/a?b=c#d": true, "HTTPS://exemple.fr": true, "https://éxemple.fr/à": true, "http://127.0.0.1:80": true,
		"www.exemple.fr": false, "exemple.fr": false, "ftp://exemple.fr": false, "https://": false, "javascript:alert(1)": false, "https:// exemple.fr": false, "https://a.fr b": false,
	} {
		if got := locations.IsWebsite(text); got != want {
			t.Errorf("website %q: got %v, want %v", text, got, want)
		}
	}
}

func TestOpeningHoursHaveTheirForm(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, `null`, `{}`, `{"texte":"sur rendez-vous"}`, `{"fuseau":"Indian/Reunion","hebdo":[{"jours":["lu","ma"],"de":"09:00","a":"12:30"}]}`,
		`{"hebdo":[{"jours":["ve"],"de":"22:00","a":"02:00"},{"jours":["di"],"de":"00:00","a":"24:00"}]}`,
		`{"exceptions":[{"du":"2026-12-25","ferme":true},{"du":"2026-07-01","au":"2026-08-31","de":"10:00","a":"18:00"}]}`,
	} {
		if _, err := locations.ParseHours(json.RawMessage(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		`"9h-12h"`:                          "hours are {",
		`[]`:                                "hours are {",
		`{"lundi":"9h"}`:                    "hours are {",
		`{"hebdo":{}}`:                      "hours are {",
		`{"hebdo":[{"jours":"lu"}]}`:        "hours are {",
		`{} {}`:                             "one object",
		`{"fuseau":"Local"}`:                "time zone",
		`{"fuseau":"Mende"}`:                "time zone",
		`{"hebdo":[{"de":"1","a":"2"}]}`:    "hebdo 0: jours is empty",
		`{"hebdo":[{"jours":["lundi"]}]}`:   "jours are among",
		`{"hebdo":[{"jours":["lu","lu"]}]}`: "none twice",
		`{"hebdo":[{"jours":["lu"],"de":"9:00","a":"12:00"}]}`:           "de is a time",
		`{"hebdo":[{"jours":["lu"],"de":"09.00","a":"12:00"}]}`:          "de is a time",
		`{"hebdo":[{"jours":["lu"],"de":"09:60","a":"12:00"}]}`:          "de is a time",
		`{"hebdo":[{"jours":["lu"],"de":"0a:00","a":"12:00"}]}`:          "de is a time",
		`{"hebdo":[{"jours":["lu"],"de":"24:00","a":"12:00"}]}`:          "de is a time",
		`{"hebdo":[{"jours":["lu"],"de":"09:00","a":"24:30"}]}`:          "a is a time",
		`{"hebdo":[{"jours":["lu"],"de":"09:00","a":"09:00"}]}`:          "both 09:00",
		`{"exceptions":[{"du":"25/12/2026","ferme":true}]}`:              "exceptions 0: du is a day",
		`{"exceptions":[{"du":"2026-12-25","au":"2026-12-24"}]}`:         "au is a day",
		`{"exceptions":[{"du":"2026-12-25"}]}`:                           "either ferme",
		`{"exceptions":[{"du":"2026-12-25","ferme":true,"de":"09:00"}]}`: "either ferme",
		`{"exceptions":[{"du":"2026-12-25","de":"09:00"}]}`:              "a is a time",
		`{"texte":"` + strings.Repeat("x", 2001) + `"}`:                  "2000 bytes",
		`{"hebdo":[` + strings.Repeat(`{},`, 100) + `{}]}`:               "at most 100",
	} {
		if _, err := locations.ParseHours(json.RawMessage(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got %v, want %q", text, err, want)
		}
	}
}

func TestFaultsNameTheirMembers(t *testing.T) {
	t.Parallel()
	c := locations.Content{Phone: "x", Email: "x", Website: "x", Hours: json.RawMessage(`{"x":1}`)}
	var got []string
	for _, f := range c.FindFaults() {
		got = append(got, f.Member)
		if c.HasSameMember(f.Member, locations.Content{}) || !c.HasSameMember(f.Member, locations.Content{Phone: "x", Email: "x", Website: "x", Hours: json.RawMessage(` {"x": 1}`)}) {
			t.Errorf("%s is not compared by itself", f.Member)
		}
	}
	if want := "telephone email site_web horaires"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if faults := (locations.Content{}).FindFaults(); faults != nil {
		t.Errorf("an empty content has %v", faults)
	}
}

func FuzzParseHours(f *testing.F) {
	f.Add(`{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"}],"exceptions":[{"du":"2026-12-25","ferme":true}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		h, err := locations.ParseHours(json.RawMessage(text))
		if err != nil {
			return
		}
		again, _ := json.Marshal(h)
		if _, err := locations.ParseHours(again); err != nil {
			t.Errorf("%s is valid, and %s is not: %v", text, again, err)
		}
	})
}

func BenchmarkFindFaults(b *testing.B) {
	c := locations.Content{
		Phone: "+33 4 66 00 00 00", Website: "https://boulangerie.example/mende", Email: "a@b.fr",
		Hours: json.RawMessage(`{"hebdo":[{"jours":["lu","ma"],"de":"08:00","a":"12:30"},{"jours":["lu"],"de":"14:00","a":"19:00"}]}`),
	}
	for b.Loop() {
		if c.FindFaults() != nil {
			b.Fatal("there are faults")
		}
	}
}
