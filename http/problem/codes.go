package problem

import (
	"fmt"
	"net/http"
)

// message is a detail that a program tells by its code and a person by its message.
type message struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func coded(status int, code, text string) Problem { return detail(status, message{code, text}) }

// Refused is a 409 with a code and a French message, for refusals of the customer area.
func Refused(code, text string) Problem { return coded(http.StatusConflict, code, text) }

// OutOfScope: a publishable key opens one method and path only.
func OutOfScope() Problem {
	return coded(http.StatusForbidden, "cle_publiable_hors_perimetre",
		"Une clé publiable n'ouvre que GET /locations/search. Utilisez une clé secrète, depuis un serveur, pour tout autre appel.")
}

// OriginAbsent: a publishable key without Origin, as a server would use it.
func OriginAbsent() Problem {
	return coded(http.StatusForbidden, "origine_absente",
		"Une clé publiable ne sert que depuis une page web : l'en-tête Origin est absent. Depuis un serveur, utilisez une clé secrète.")
}

// OriginRefused: the request comes from an origin the key does not declare.
func OriginRefused() Problem {
	return coded(http.StatusForbidden, "origine_non_autorisee",
		"L'origine de cette page n'est pas déclarée sur la clé publiable. Ajoutez-la à ses domaines dans l'espace client.")
}

// SitesOverCapacity: the write would leave more active sites than the ceiling.
func SitesOverCapacity(active, capacity, ceiling int) Problem {
	return detail(http.StatusConflict, struct {
		Code     string `json:"code"`
		Active   int    `json:"sites_actifs"`
		Capacity int    `json:"capacite"`
		Ceiling  int    `json:"plafond"`
	}{"capacite_sites_depassee", active, capacity, ceiling})
}

// ReferentialsOverCapacity: every active referential the plan includes is in use.
func ReferentialsOverCapacity(active, maximum int) Problem {
	return detail(http.StatusConflict, struct {
		Code    string `json:"code"`
		Active  int    `json:"referentiels_actifs"`
		Maximum int    `json:"maximum"`
	}{"capacite_referentiels_depassee", active, maximum})
}

// CodeTaken: a referential of the account, active or archived, has the code already.
func CodeTaken() Problem { return Conflict("code_deja_utilise") }

// SuspiciousReduction: a sync would deactivate more than half of the active sites.
func SuspiciousReduction(before, after int) Problem {
	return detail(http.StatusConflict, struct {
		Code    string `json:"code"`
		Before  int    `json:"actifs_avant"`
		After   int    `json:"actifs_apres"`
		Message string `json:"message"`
	}{"reduction_suspecte", before, after, fmt.Sprintf(
		"Cette synchronisation désactiverait plus de la moitié des %d sites actifs. Si c'est voulu, renvoyez-la avec confirmer_reduction à true.", before)})
}

// KeysOverCapacity: every publishable key the plan includes is in use. A ceiling of 0: it includes none.
func KeysOverCapacity(ceiling, active int) Problem {
	text := fmt.Sprintf("Les %d clés publiables de votre plan sont utilisées. Révoquez-en une, ou passez à un plan supérieur.", ceiling)
	switch ceiling {
	case 0:
		text = "Votre plan n'inclut pas de clé publiable. Passez à un plan supérieur."
	case 1:
		text = "La clé publiable de votre plan est utilisée. Révoquez-la, ou passez à un plan supérieur."
	}
	return detail(http.StatusConflict, struct {
		Code    string `json:"code"`
		Ceiling int    `json:"plafond"`
		Active  int    `json:"actives"`
		Message string `json:"message"`
	}{"capacite_cles_publiables_depassee", ceiling, active, text})
}
