package clean_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lieudit/http/sitefile/clean"
	"lieudit/schemas/locations"
)

// showHours is the hours of a week in short: lu,ma 09:00-12:00; … and + where a text stands next to them. A text alone is ?.
func showHours(t *testing.T, hours json.RawMessage) string {
	t.Helper()
	if hours == nil {
		return ""
	}
	h, err := locations.ParseHours(hours)
	if err != nil {
		t.Fatalf("%s: %v", hours, err)
	}
	var parts []string
	for _, s := range h.Weekly {
		parts = append(parts, strings.Join(s.Days, ",")+" "+s.From+"-"+s.To)
	}
	switch shown := strings.Join(parts, "; "); {
	case shown == "":
		return "?"
	case h.Text != "":
		return shown + " +"
	default:
		return shown
	}
}

const (
	weekdays = "lu,ma,me,je,ve "
	allDays  = "lu,ma,me,je,ve,sa,di "
)

// readHours are texts and the week that they mean; "?" where they stay a text.
var readHours = []struct{ text, want string }{
	// OSM, schema.org
	{"Mo-Fr 09:00-12:30,14:00-19:00; Sa 09:00-12:00", weekdays + "09:00-12:30; " + weekdays + "14:00-19:00; sa 09:00-12:00"},
	{"Mo-Fr 09:00-17:00; PH off", weekdays + "09:00-17:00 +"},
	{"Mo-Su,PH 10:00-20:00", allDays + "10:00-20:00 +"},
	{"24/7", allDays + "00:00-24:00"},
	{"Mo-Su 10:00-20:00; Tu off", "lu,me,je,ve,sa,di 10:00-20:00"},
	{"Mo,We 10:00-18:00", "lu,me 10:00-18:00"},
	{"Mo-Fr 10:00-18:00; We 10:00-20:00", "lu,ma,je,ve 10:00-18:00; me 10:00-20:00"},
	{"Mo-Fr 10:00-18:00, We 20:00-22:00", "lu,ma,je,ve 10:00-18:00; me 10:00-18:00; me 20:00-22:00"},
	{"Mo-Sa 09:00-12:00; Mo-Fr 14:00-18:00", "?"}, // the afternoon in place of the morning, or after it?
	{"Fr-Mo 14:00-23:00", "lu,ve,sa,di 14:00-23:00"},
	{"Mo-Th 18:00-02:00", "lu,ma,me,je 18:00-02:00"},
	{"Fr,Sa 18:00-26:00", "ve,sa 18:00-02:00"},
	{"Mo-Su 00:00-24:00", allDays + "00:00-24:00"},
	{"Mo-Su 09:30-00:00", allDays + "09:30-24:00"},
	{"Mo 09:00:00-17:00:00", "lu 09:00-17:00"},
	{"Mo-Fr 00:00-00:00", "?"},
	{"Apr-Oct Mo-Su 10:00-18:00", "?"}, {"Mar Mo-Fr 09:00-12:00", "?"}, {"week 1-20 Mo 09:00-12:00", "?"}, {"Mo-Fr sunrise-sunset", "?"},
	{"Mo-Fr 09:00-17:00+", "?"}, {"Mo[1] 09:00-12:00", "?"}, {`Mo-Fr 09:00-12:00 "sur rendez-vous"`, "?"}, {"Mo 09:00-12:00 || Tu 09:00-12:00", "?"},
	{"Mo-Fr 09:00-13:00,12:00-18:00", "?"}, {"09:00-18:00", "?"}, {"Mo-Fr 09:00-25:60", "?"}, {"Mo-Fr 14:00-12:00", "?"}, {"Mo-Fr off", "?"},
	// French
	{"Du lundi au vendredi de 9h à 12h30 et de 14h à 19h, samedi 9h-12h", weekdays + "09:00-12:30; " + weekdays + "14:00-19:00; sa 09:00-12:00"},
	{"Lun-Ven: 9h00-18h00", weekdays + "09:00-18:00"},
	{"Lun. - Ven. : 9h00 – 18h00", weekdays + "09:00-18:00"},
	{"Lu-Ve 8:30-19:00", weekdays + "08:30-19:00"},
	{"LUNDI AU VENDREDI 8H-12H / 13H30-17H30", weekdays + "08:00-12:00; " + weekdays + "13:30-17:30"},
	{"tous les jours 10h-20h", allDays + "10:00-20:00"},
	{"7j/7 24h/24", allDays + "00:00-24:00"}, {"24 h / 24", allDays + "00:00-24:00"}, {"24h/24 - 7j/7", allDays + "00:00-24:00"}, {"H24", allDays + "00:00-24:00"},
	{"Lundi : 09:00 - 12:00 / 14:00 - 18:00 \n Mardi : Fermé", "lu 09:00-12:00; lu 14:00-18:00"},
	{"lundi :  | mardi : 9h-12h", "?"}, {"lundi : 9h-12h | mardi : 14h-18h |", "lu 09:00-12:00; ma 14:00-18:00"}, {"lundi, mardi : 9h-12h", "lu,ma 09:00-12:00"},
	{"lundi : 9h-12h | mardi : non", "lu 09:00-12:00"}, {"lundi 9h-19h non stop", "lu 09:00-19:00"},
	{"Horaires : lundi | mardi 9h-12h", "lu,ma 09:00-12:00"},
	{"Lundi\n9h-12h\nMardi\n9h-12h", "lu,ma 09:00-12:00"},
	{"Ouvert du mercredi au lundi de 10 h à 18 h 30", "lu,me,je,ve,sa,di 10:00-18:30"},
	{"Ouvert de 10h à 18 du mardi au dimanche", "ma,me,je,ve,sa,di 10:00-18:00"},
	{"9-12h le lundi", "lu 09:00-12:00"},
	{"tous les jours sauf le mardi de 10h à 18h", "lu,me,je,ve,sa,di 10:00-18:00"},
	{"tous les jours de 10h à 18h sauf mardi et jours fériés", "lu,me,je,ve,sa,di 10:00-18:00 +"},
	{"Fermé le lundi. Ouvert du mardi au jeudi de 9h à 19h", "ma,me,je 09:00-19:00"},
	{"Tous les jours de 9h à 12h. Fermé lundi et dimanche", "ma,me,je,ve,sa 09:00-12:00"},
	{"samedi, dimanche et jours fériés de 14h à 18h", "sa,di 14:00-18:00 +"},
	{"vendredi-samedi-dimanche 9h-12h", "ve,sa,di 09:00-12:00"}, {"lundi-mercredi-samedi 9h-12h", "?"},
	{"week-end : 10h à minuit", "sa,di 10:00-24:00"}, {"lundi de midi à 14h", "lu 12:00-14:00"},
	{"lundi 10h 14h-18h", "?"}, {"lundi 9h-18h sur rendez-vous", "?"}, {"lundi au vendredi 9h-18h, mercredi 10h-12h", "?"}, {"9h-12h", "?"},
	{"de 10h à 18h du mardi au samedi, dimanche de 14h à 18h", "?"}, {"lundi, mardi", "?"}, {"fermé", "?"}, {"lundi fermé lundi 9h-12h", "?"},
	{"le premier lundi du mois 9h-12h", "?"}, {"du 1er mai au 30 juin lundi 9h-12h", "?"}, {"lundi 9-12", "?"}, {"6 h - 22 h", "?"}, {"lundi matin", "?"},
	{"lundi 10h-18h sauf mardi", "?"}, {"tous les jours 10h-18h sauf dimanche 10h-12h", "?"}, {"jeudi au 1", "?"},
	// a slash for a range, and days that are left out of all
	{"9h/12h - 14h/19h sauf dimanche", "lu,ma,me,je,ve,sa 09:00-12:00; lu,ma,me,je,ve,sa 14:00-19:00"},
	{"9h/19h sauf le dimanche et les jours fériés", "lu,ma,me,je,ve,sa 09:00-19:00 +"},
	{"8h30/12h15 et 13h30/18h du lundi au vendredi", weekdays + "08:30-12:15; " + weekdays + "13:30-18:00"},
	{"Du lundi au samedi : 9h00/12h00 14h00/19h00", "lu,ma,me,je,ve,sa 09:00-12:00; lu,ma,me,je,ve,sa 14:00-19:00"},
	{"lundi au vendredi 9/18h", weekdays + "09:00-18:00"}, {"9h-12h/14h-19h sauf lundi", "ma,me,je,ve,sa,di 09:00-12:00; ma,me,je,ve,sa,di 14:00-19:00"},
	{"lundi 9h-12h/14h-16h/17h-19h", "lu 09:00-12:00; lu 14:00-16:00; lu 17:00-19:00"},
	{"10h-19h, fermé le lundi", "ma,me,je,ve,sa,di 10:00-19:00"}, {"De 9h à 19h. Fermé dimanche et jours fériés.", "lu,ma,me,je,ve,sa 09:00-19:00 +"},
	{"10h-12h / 14h-18h fermé samedi et dimanche", weekdays + "10:00-12:00; " + weekdays + "14:00-18:00"},
	{"lundi au samedi 9h-19h sans interruption", "lu,ma,me,je,ve,sa 09:00-19:00"}, {"mardi au samedi 9h-19h journée continue", "ma,me,je,ve,sa 09:00-19:00"},
	{"Du lundi au vendredi le matin de 9h à 12h et l'après-midi de 14h à 18h, samedi matin 9h-12h", weekdays + "09:00-12:00; " + weekdays + "14:00-18:00; sa 09:00-12:00"},
	{"7h-20h toute l'année sauf mardi", "lu,me,je,ve,sa,di 07:00-20:00"},
	{"Fermé le lundi", "?"}, {"Fermé le lundi et le mardi", "?"}, {"sauf dimanche", "?"}, {"9h-19h sauf dimanche 9h-12h", "?"}, {"9h/12h/14h", "?"}, {"9/12 - 14/19 sauf lundi", "?"},
	{"10h-19h, fermé du 1er au 15 août", "?"}, {"10h-19h fermé", "?"}, {"9h-12h fermé le lundi matin 14h-18h", "?"}, {"le matin", "?"}, {"ouvert l'après-midi", "?"},
	// English, Google
	{"Monday: 9:00 AM – 5:00 PM\nTuesday: Closed\nSunday: 12:30 – 5 PM", "?"}, // 12:30 of the night or of noon?
	{"Monday: 9:00\u202fAM – 5:00\u202fPM\nTuesday: Closed", "lu 09:00-17:00"},
	{`["Monday: 12:30 PM – 12:00 AM","Tuesday: Closed"]`, "lu 12:30-24:00"},
	{"daily 9am-5pm", allDays + "09:00-17:00"}, {"every Monday 9am-5pm", "?"}, {"school holidays 9am-5pm", "?"}, {"allday", "?"},
	// JSON
	{`{"lundi":"09:00-12:00","mardi":null,"mercredi":"9h-12h / 14h-18h","dimanche":"Fermé"}`, "lu 09:00-12:00; me 09:00-12:00; me 14:00-18:00"},
	{`{'lundi': '09:00-12:00', 'mardi': None}`, "lu 09:00-12:00"},
	{`{"Mo":["09:00","12:00"],"Tu":[["09:00","12:00"],["14:00","18:00"]],"We":[]}`, "lu 09:00-12:00; ma 09:00-12:00; ma 14:00-18:00"},
	{`{"monday":{"open":"09:00","close":"17:00"},"tuesday":[{"from":"9:00","to":"12:00"}]}`, "lu 09:00-17:00; ma 09:00-12:00"},
	{`[{"@type":"OpeningHoursSpecification","dayOfWeek":["Monday","https://schema.org/Tuesday"],"opens":"09:00","closes":"17:00"}]`, "lu,ma 09:00-17:00"},
	{`{"openingHoursSpecification":[{"dayOfWeek":"Friday","opens":"18:00","closes":"01:00"}]}`, "ve 18:00-01:00"},
	{`[{"jour":"lundi","ouverture":"09h00","fermeture":"12h00"},{"jour":"lundi","ouverture":"14h00","fermeture":"18h00"}]`, "lu 09:00-12:00; lu 14:00-18:00"},
	{`[{"nom_jour_debut":"Lundi","nom_jour_fin":"Mardi","valeur_heure_debut_1":"08:30:00","valeur_heure_fin_1":"12:00:00","valeur_heure_debut_2":"","valeur_heure_fin_2":"","commentaire":""}]`, "lu,ma 08:30-12:00"},
	{`[{"nom_jour_debut":"Lundi","nom_jour_fin":"Mardi","valeur_heure_debut_1":"08:30:00","valeur_heure_fin_1":"12:00:00","commentaire":"sur rendez-vous"}]`, "?"},
	{`<Ouverture> <PlageJ debut="lundi" fin="jeudi"> <PlageH debut="08:30:00" fin="12:00:00"/> <PlageH debut="14:00:00" fin="17:00:00"/> </PlageJ></Ouverture>`, "lu,ma,me,je 08:30-12:00; lu,ma,me,je 14:00-17:00"},
	{`<Ouverture> <PlageJ debut="jeudi" fin="jeudi"> </PlageJ></Ouverture>`, "?"},
	{`{"dayOfWeek":"Monday","opens":"09:00","closes":"17:00","validFrom":"2026-01-01"}`, "?"},
	{`{"lundi":"09:00-12:00","note":"x"}`, "?"}, {`{"lundi":"09:00-12:00","Lun":"14:00-18:00"}`, "?"}, {`{"lundi":null}`, "?"}, {`[1,2]`, "?"},
	{`{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:00"}],"exceptions":[{"du":"2026-12-25","au":"2026-12-25","ferme":true}]}`, "lu 09:00-12:00"},
	{`{"hebdo":[{"jours":["lundi"],"de":"9h","a":"12h"}]}`, "?"},
	// nothing
	{"", ""}, {"-", ""}, {"NC", ""}, {"true", ""}, {"Oui", ""}, {"0", ""}, {"{}", ""}, {"[]", ""},
}

func TestHoursAreReadWholeOrStayText(t *testing.T) {
	t.Parallel()
	for _, c := range readHours {
		hours, ok := clean.Hours(c.text, nil)
		if got := showHours(t, hours); got != c.want || ok != (c.want != "" && c.want != "?") {
			t.Errorf("%q: got %s, %v; want %s", c.text, got, ok, c.want)
		}
	}
}

func TestUnreadHoursKeepTheirText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Sur rendez-vous <b> ": `{"texte":"Sur rendez-vous <b>"}`,
		`{"lundi": "x"}`:        `{"texte":"{\"lundi\": \"x\"}"}`,
	} {
		if got, ok := clean.Hours(text, nil); string(got) != want || ok {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got, ok := clean.Hours("", json.RawMessage(`{"lundi":"x"}`)); string(got) != `{"texte":"{\"lundi\":\"x\"}"}` || ok {
		t.Errorf("of JSON without a text: got %s", got)
	}
	if got, ok := clean.Hours(strings.Repeat("long ", 500), nil); got != nil || ok {
		t.Errorf("more than horaires can hold: got %d bytes", len(got))
	}
}

func TestHoursOfColumnsOfDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		days [7]string
		want string
	}{
		{[7]string{"9h-12h", "9h-12h / 14h-18h", "", "Fermé", "24h/24", "-", "closed"}, "lu 09:00-12:00; ma 09:00-12:00; ma 14:00-18:00; ve 00:00-24:00"},
		{[7]string{"9h-12h", "sur rendez-vous"}, "?"},
		{[7]string{"9h-12h", "oui"}, "?"},
		{[7]string{"0", "1", "0", "1"}, ""},
		{[7]string{"Fermé", "Fermé"}, "?"},
		{[7]string{}, ""},
	} {
		hours, ok := clean.WeekdayHours(c.days)
		if got := showHours(t, hours); got != c.want || ok != (c.want != "" && c.want != "?") {
			t.Errorf("%q: got %s, %v; want %s", c.days, got, ok, c.want)
		}
	}
	if got, _ := clean.WeekdayHours([7]string{1: "9h-12h", 6: "sur rendez-vous"}); string(got) != `{"texte":"mardi : 9h-12h\ndimanche : sur rendez-vous"}` {
		t.Errorf("got %s", got)
	}
}
