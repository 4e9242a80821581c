package docs

import (
	"encoding/json"
	"net/url"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/i18n"
	"lieudit/http/pages/page"
	"lieudit/schemas/body"
)

// decision is what to do with the answer of a verification.
type decision string

const (
	accept decision = "accept"
	ask    decision = "ask"
	refuse decision = "refuse"
)

// decide is the rule: accept what resolves with its number found, ask about any other match, refuse if nothing was found.
func decide(answer body.Matches) decision {
	if len(answer.Matches) == 0 {
		return refuse
	}
	best := answer.Matches[0]
	if best.IsResolved && best.NumberFound != nil && *best.NumberFound {
		return accept
	}
	return ask
}

// worked is an example of a verification with its decision.
type worked struct {
	ID       string
	Why      i18n.Text
	Typed    string
	Answer   string
	Match    *body.Match // the best; nil: nothing was found
	Reason   string      // motif, of the match or of the answer
	Decision decision
	Parts    []part
}

// part is a row of composants. Those that are neither typed nor in the base are left out.
type part struct {
	Name string
	body.Component
}

// meaning is a value of an answer, and what it means.
type meaning struct {
	Value string
	Text  i18n.Text
}

// verdictPage is the data of verdicts.html.
type verdictPage struct {
	frame
	Worked                                 []worked
	Verdicts, Statuses, Reasons, Precision []meaning
}

// workedExamples are the scenarios that the page works through, with what each shows.
var workedExamples = []struct {
	scene, title string
	why          i18n.Text
}{
	{"get_address_verify.exact", "as in the base", i18n.Text{FR: "Tout est confirmé", EN: "All is confirmed"}},
	{"get_address_verify.complement", "in the line", i18n.Text{FR: "Un complément ne gêne pas", EN: "A complement does no harm"}},
	{"get_address_verify.probable", "a letter is wrong", i18n.Text{FR: "Une lettre fausse est corrigée", EN: "A wrong letter is corrected"}},
	{"get_address_verify.probable", "the postcode is another", i18n.Text{FR: "Le code postal est un autre du même département", EN: "The postcode is another one of the same department"}},
	{"get_address_verify.probable", "the number is missing", i18n.Text{FR: "La voie n’a pas ce numéro", EN: "The street does not have this number"}},
	{"get_address_verify.repli", "the commune", i18n.Text{FR: "La voie est inconnue, la commune répond (repli=commune)", EN: "The street is unknown, the commune answers (repli=commune)"}},
	{"get_address_verify.expliquer", "no such street", i18n.Text{FR: "La voie est inconnue (expliquer=true)", EN: "The street is unknown (expliquer=true)"}},
	{"get_address_verify.expliquer", "not loaded", i18n.Text{FR: "La base chargée n’a pas cette commune", EN: "The base that is loaded does not have this commune"}},
}

func showVerdicts(q *page.Request) (page.View, error) {
	data := verdictPage{
		frame: frame{Document: reference.API(), Here: "verdicts"}, Verdicts: verdictMeanings, Statuses: statusMeanings, Reasons: reasonMeanings, Precision: precisionMeanings,
	}
	for i, w := range workedExamples {
		one, err := workExample(reference.FindExample(w.scene, w.title))
		if err != nil {
			return page.View{}, err
		}
		one.ID, one.Why = "exemple-"+string(rune('1'+i)), w.why
		data.Worked = append(data.Worked, one)
	}
	return page.View{Template: "verdicts.html", Title: q.T("Verdicts : accepter, demander ou refuser", "Verdicts: accept, ask or refuse"), IsWide: true, Data: data}, nil
}

// workExample reads an example of a verification.
func workExample(e reference.Example) (worked, error) {
	var answer body.Matches
	if err := json.Unmarshal([]byte(e.Answer), &answer); err != nil {
		return worked{}, err
	}
	values, err := url.ParseQuery(e.Request.Query())
	if err != nil {
		return worked{}, err
	}
	w := worked{Typed: values.Get("q"), Answer: e.Answer, Reason: answer.Reason, Decision: decide(answer)}
	if len(answer.Matches) > 0 {
		w.Match = &answer.Matches[0]
		w.Reason = w.Match.Reason
		c := w.Match.Components
		for _, p := range []part{{"numero", c.Number}, {"rep", c.Rep}, {"voie", c.Street}, {"code_postal", c.PostalCode}, {"commune", c.City}} {
			if p.Input != "" || p.Matched != "" {
				w.Parts = append(w.Parts, p)
			}
		}
		if c.Complement != nil {
			w.Parts = append(w.Parts, part{"complement", *c.Complement})
		}
	}
	return w, nil
}

// What the values of a verification mean. A test holds each table to the values that the schema allows.
var (
	verdictMeanings = []meaning{
		{"match_exact", i18n.Text{FR: "Chaque partie écrite est confirmée (majuscules, accents, abréviations et ponctuation à part), le numéro existe, et aucune autre adresse ne répond aux mêmes mots.", EN: "Every part that was typed is confirmed (apart from case, accents, abbreviations and punctuation), the number exists, and no other address fits the same words."}},
		{"match_probable", i18n.Text{FR: "Trouvée, mais quelque chose diffère : une correction, un numéro absent, un mot de trop. resout dit si elle peut être prise sans demander.", EN: "Found, but something differs: a correction, a missing number, a word too many. resout tells whether it can be taken without asking."}},
		{"commune_seule", i18n.Text{FR: "Avec repli=commune : l’adresse n’est pas trouvée, sa commune répond à sa place.", EN: "With repli=commune: the address was not found, its commune answers in its place."}},
	}
	statusMeanings = []meaning{
		{"confirme", i18n.Text{FR: "Écrit ainsi, et ainsi dans la base.", EN: "Typed, and so in the base."}},
		{"corrige", i18n.Text{FR: "Écrit autrement que dans la base : retenu donne la bonne forme.", EN: "Typed otherwise than in the base: retenu has the right form."}},
		{"ajoute", i18n.Text{FR: "Pas écrit, mais la base le sait : retenu le donne.", EN: "Not typed, but the base knows it: retenu has it."}},
		{"non_confirme", i18n.Text{FR: "Écrit, mais la base ne l’a pas à cette adresse.", EN: "Typed, but the base does not have it at this address."}},
		{"absent", i18n.Text{FR: "Ni écrit, ni dans la base. Pour complement : écrit, mais la base ne connaît pas les compléments, et cela ne retire rien.", EN: "Neither typed nor in the base. For complement: typed, but the base has no complements, which takes nothing away."}},
	}
	reasonMeanings = []meaning{
		{"hors_couverture", i18n.Text{FR: "La base chargée n’a aucune adresse de cette commune, ou de ce département si la commune manque.", EN: "The base that is loaded has no address of this commune, or of this department if no commune was typed."}},
		{"commune_inconnue", i18n.Text{FR: "La commune écrite n’existe pas.", EN: "There is no such commune."}},
		{"commune_contredite", i18n.Text{FR: "La meilleure adresse est dans une autre commune que celle qui est écrite.", EN: "The best address is in another commune than the one that was typed."}},
		{"code_postal_contredit", i18n.Text{FR: "Le code postal écrit ne va pas avec le reste.", EN: "The postcode that was typed does not go with the rest."}},
		{"voie_absente", i18n.Text{FR: "La commune n’a pas cette voie.", EN: "The commune does not have this street."}},
		{"numero_absent", i18n.Text{FR: "La voie existe, pas ce numéro : numeros_proches en propose.", EN: "The street exists, the number does not: numeros_proches offers some."}},
		{"mots_inconnus", i18n.Text{FR: "Des mots restent inexpliqués : composants.inconnus les nomme.", EN: "Some words stay unexplained: composants.inconnus names them."}},
		{"plusieurs_adresses", i18n.Text{FR: "Plusieurs adresses conviennent presque autant : faites choisir.", EN: "Several addresses fit almost as well: have one chosen."}},
		{"score_faible", i18n.Text{FR: "L’écriture est trop loin de l’adresse trouvée.", EN: "What was typed is too far from the address found."}},
	}
	precisionMeanings = []meaning{
		{"housenumber", i18n.Text{FR: "Au numéro : la position est celle du bâtiment ou de son entrée.", EN: "To the number: the position is that of the building or its entrance."}},
		{"street", i18n.Text{FR: "À la voie : la position est quelque part sur elle.", EN: "To the street: the position is somewhere on it."}},
		{"locality", i18n.Text{FR: "Au lieu-dit.", EN: "To the locality."}},
		{"municipality", i18n.Text{FR: "À la commune : la position est son centre.", EN: "To the commune: the position is its centre."}},
	}
)
