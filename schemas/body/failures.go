package body

import "lieudit/schemas/body/openapi"

// The error answers that operations share, as examples for their documents. What is sent is made by package problem,
// and a test of it holds every example here to that.
var (
	malformedRequest = textFailure("requete_invalide", 400, "Request too short or invalid")

	keyRequired = textFailure("cle_absente", 401, "API key required. Please provide a valid API key in the Authorization header.")
	keyInvalid  = textFailure("cle_invalide", 401, "Invalid API key")

	planInsufficient = textFailure("plan_insuffisant", 403, "Your plan (GROWTH) does not have access to this service. Please upgrade your plan.")
	roleForbidden    = textFailure("role_insuffisant", 403, "Forbidden")
	outOfScope       = codeFailure("cle_publiable_hors_perimetre", 403,
		"Une clé publiable n'ouvre que GET /locations/search. Utilisez une clé secrète, depuis un serveur, pour tout autre appel.")
	originMissing = codeFailure("origine_absente", 403,
		"Une clé publiable ne sert que depuis une page web : l'en-tête Origin est absent. Depuis un serveur, utilisez une clé secrète.")
	originRefused = codeFailure("origine_non_autorisee", 403,
		"L'origine de cette page n'est pas déclarée sur la clé publiable. Ajoutez-la à ses domaines dans l'espace client.")

	notFound     = textFailure("inconnu", 404, "Not found")
	bodyTooLarge = textFailure("corps_trop_grand", 413, "Request body too large")

	codeTaken           = textFailure("code_deja_utilise", 409, "code_deja_utilise")
	referentialArchived = textFailure("referentiel_archive", 409, "referentiel_archive")

	sitesOverCapacity = openapi.Failure{Name: "capacite_sites_depassee", Status: 409, Body: SitesFailure{SitesOverCapacity{
		"capacite_sites_depassee", 2199, 2000, 2200,
	}}}
	referentialsOverCapacity = openapi.Failure{Name: "capacite_referentiels_depassee", Status: 409, Body: ReferentialsFailure{ReferentialsOverCapacity{
		"capacite_referentiels_depassee", 25, 25,
	}}}
	suspiciousReduction = openapi.Failure{Name: "reduction_suspecte", Status: 409, Body: ReductionFailure{Reduction{
		"reduction_suspecte", 100, 40, "Cette synchronisation désactiverait plus de la moitié des 100 sites actifs. Si c'est voulu, renvoyez-la avec confirmer_reduction à true.",
	}}}
	idempotencyMismatch = textFailure("idempotence", 422, "Idempotency-Key was used for another request")

	keysOverCapacity = openapi.Failure{Name: "capacite_cles_publiables_depassee", Status: 409, Body: KeysFailure{KeysOverCapacity{
		"capacite_cles_publiables_depassee", 5, 5,
		"Les 5 clés publiables de votre plan sont utilisées. Révoquez-en une, ou passez à un plan supérieur.",
	}}}

	accountExists    = codeFailure("compte_deja_ouvert", 409, "Un compte existe déjà sous cet identifiant.")
	accountClosed    = codeFailure("compte_ferme", 409, "Ce compte est fermé.")
	agencyUnknown    = codeFailure("agence_inconnue", 409, "Aucun compte en mode agence ne porte cet identifiant.")
	nestedAgency     = codeFailure("agence_imbriquee", 409, "Une agence ne peut pas être le sous-client d'une autre.")
	alreadySubClient = codeFailure("deja_sous_client", 409, "Ce compte est déjà le sous-client d'une agence.")
	leavingAgency    = codeFailure("sous_client_sur_le_depart", 409, "Ce sous-client quitte l'agence : ses conditions sont arrêtées.")
	notSubClient     = codeFailure("pas_sous_client", 409, "Ce compte n'est le sous-client d'aucune agence.")

	leavingUnconfirmed = codeFailure("depart_a_confirmer", 409, "Un opérateur confirme le départ d'un sous-client : demandez-le-lui.")
	planOfAgency       = codeFailure("plan_de_l_agence", 409, "Le plan d'un sous-client est celui de son agence.")
	originsOnSecretKey = codeFailure("origines_sur_cle_secrete", 409, "Seules les clés publiables déclarent des origines.")
	keyRevoked         = codeFailure("cle_revoquee", 409, "Cette clé est révoquée.")

	periodNotClosed      = codeFailure("periode_non_close", 409, "Cette période n'est pas close : seule une période close se corrige.")
	dayOutsidePeriod     = codeFailure("jour_hors_periode", 409, "Ce jour n'est pas dans la période.")
	accountNotInContract = codeFailure("compte_hors_contrat", 409, "Ce compte n'a rien consommé sur ce contrat pendant la période.")
	adjustmentBelowZero  = codeFailure("correction_excessive", 409, "La correction laisserait moins de zéro requête.")
	adjustmentZero       = codeFailure("correction_nulle", 409, "Une correction ajoute ou retire au moins une requête.")

	validationFailed = openapi.Failure{Name: "regles", Status: 422, Body: RuleFailure{[]Violation{{
		"less_than_equal", []any{"query", "limit"}, "Input should be less than or equal to 100", map[string]any{"limit": "500"},
	}}}}
	addressUnparsable = openapi.Failure{Name: "adresse_illisible", Status: 422, Body: ParseFailure{"API_ERROR", "Unable to parse address"}}
	addressUnresolved = textFailure("adresse_non_resolue", 422, "Unable to resolve 3 rue de Nulle Part to a verified match")

	originInvalid  = codeFailure("origine_invalide", 422, "L'origine « http://exemple.fr » est refusée : elle doit commencer par https://.")
	tooManyOrigins = codeFailure("trop_d_origines", 422, "Une clé publiable accepte au plus 10 origines, 11 ont été déclarées.")

	discoveryQuotaExceeded = textFailure("quota_discovery", 429, "Rate limit exceeded. Max allowed usage for plan DISCOVERY is 20000 requests.")
	quotaExceeded          = textFailure("quota", 429, "Your plan (GROWTH) has exceeded the rate limit for this service. Please upgrade your plan.")

	internalError      = textFailure("erreur_interne", 500, "Internal error")
	routingUnavailable = textFailure("routage_indisponible", 500, "Routing engine unavailable")
	authUnavailable    = textFailure("authentification_indisponible", 503, "Authentication service unavailable")
)

func textFailure(name string, status int, text string) openapi.Failure {
	return openapi.Failure{Name: name, Status: status, Body: TextFailure{text}}
}

func codeFailure(code string, status int, text string) openapi.Failure {
	return openapi.Failure{Name: code, Status: status, Body: CodeFailure{Code{code, text}}}
}

// apiFailures is the failures of every operation that asks for an API key, and some more.
func apiFailures(more ...openapi.Failure) []openapi.Failure {
	return append([]openapi.Failure{
		malformedRequest, keyRequired, keyInvalid, planInsufficient, outOfScope, validationFailed, discoveryQuotaExceeded, quotaExceeded, internalError, authUnavailable,
	}, more...)
}

// areaFailures is the failures of every operation of the customer area, and some more.
func areaFailures(more ...openapi.Failure) []openapi.Failure {
	return append([]openapi.Failure{malformedRequest, keyRequired, keyInvalid, roleForbidden, validationFailed, internalError, authUnavailable}, more...)
}
