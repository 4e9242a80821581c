package problem

import (
	"fmt"
	"net/http"

	"lieudit/schemas/body"
)

func newConflict(detailBody any) Problem {
	return Problem{Status: http.StatusConflict, body: detailBody}
}

func newCodeProblem(status int, code, text string) Problem {
	return Problem{Status: status, body: body.CodeFailure{Detail: body.Code{Code: code, Message: text}}}
}

// Refused is a 409 with a code and a French message, for what the state of an account forbids.
func Refused(code, text string) Problem { return newCodeProblem(http.StatusConflict, code, text) }

// PublishableKeyOutOfScope: a publishable key opens one method and path only.
func PublishableKeyOutOfScope() Problem {
	return newCodeProblem(http.StatusForbidden, "cle_publiable_hors_perimetre",
		"Une clé publiable n'ouvre que GET /locations/search. Utilisez une clé secrète, depuis un serveur, pour tout autre appel.")
}

// OriginMissing: a publishable key without Origin, as a server would use it.
func OriginMissing() Problem {
	return newCodeProblem(http.StatusForbidden, "origine_absente",
		"Une clé publiable ne sert que depuis une page web : l'en-tête Origin est absent. Depuis un serveur, utilisez une clé secrète.")
}

// OriginNotAllowed: the request comes from an origin the key does not declare.
func OriginNotAllowed() Problem {
	return newCodeProblem(http.StatusForbidden, "origine_non_autorisee",
		"L'origine de cette page n'est pas déclarée sur la clé publiable. Ajoutez-la à ses domaines dans l'espace client.")
}

// SiteCapacityExceeded: the write would leave more active sites than the ceiling.
func SiteCapacityExceeded(active, capacity, ceiling int) Problem {
	return newConflict(body.SitesFailure{Detail: body.SitesOverCapacity{
		Code: "capacite_sites_depassee", Active: active, Capacity: capacity, Ceiling: ceiling,
	}})
}

// ReferentialCapacityExceeded: every active referential the plan includes is in use.
func ReferentialCapacityExceeded(active, maximum int) Problem {
	return newConflict(body.ReferentialsFailure{Detail: body.ReferentialsOverCapacity{
		Code: "capacite_referentiels_depassee", Active: active, Maximum: maximum,
	}})
}

// ReferentialCodeTaken: a referential of the account, active or archived, has the code already.
func ReferentialCodeTaken() Problem { return Conflict("code_deja_utilise") }

// ReferentialArchived: the referential takes no writes any more.
func ReferentialArchived() Problem { return Conflict("referentiel_archive") }

// SuspiciousReduction: a sync would deactivate more than half of the active sites.
func SuspiciousReduction(before, after int) Problem {
	return newConflict(body.ReductionFailure{Detail: body.Reduction{
		Code: "reduction_suspecte", ActiveBefore: before, ActiveAfter: after, Message: fmt.Sprintf(
			"Cette synchronisation désactiverait plus de la moitié des %d sites actifs. Si c'est voulu, renvoyez-la avec confirmer_reduction à true.", before),
	}})
}

// PublishableKeyCapacityExceeded: every publishable key the plan includes is in use. A ceiling of 0: it includes none.
func PublishableKeyCapacityExceeded(ceiling, active int) Problem {
	text := fmt.Sprintf("Les %d clés publiables de votre plan sont utilisées. Révoquez-en une, ou passez à un plan supérieur.", ceiling)
	switch ceiling {
	case 0:
		text = "Votre plan n'inclut pas de clé publiable. Passez à un plan supérieur."
	case 1:
		text = "La clé publiable de votre plan est utilisée. Révoquez-la, ou passez à un plan supérieur."
	}
	return newConflict(body.KeysFailure{Detail: body.KeysOverCapacity{
		Code: "capacite_cles_publiables_depassee", Ceiling: ceiling, Active: active, Message: text,
	}})
}
