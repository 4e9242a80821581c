package account

import (
	"errors"
	"fmt"

	"lieudit/commands"
	"lieudit/schemas/event"
)

var (
	// ErrUnknownAccount: there is no such account.
	ErrUnknownAccount = errors.New("unknown account")
	// ErrUnknownKey: the account has no such key.
	ErrUnknownKey = errors.New("unknown key")
)

// Refusal is a rule that a command on an account breaks: a code for programs and a French text for people.
type Refusal struct{ code, text string }

func (r *Refusal) Error() string { return r.text }

// Code names the rule.
func (r *Refusal) Code() string { return r.code }

// The rules of accounts and agencies.
var (
	ErrAlreadyOpen        = &Refusal{"compte_deja_ouvert", "Un compte existe déjà sous cet identifiant."}
	ErrClosed             = &Refusal{"compte_ferme", "Ce compte est fermé."}
	ErrNotClosed          = &Refusal{"compte_ouvert", "Ce compte est ouvert : fermez-le d'abord."}
	ErrUnknownAgency      = &Refusal{"agence_inconnue", "Aucun compte en mode agence ne porte cet identifiant."}
	ErrNestedAgency       = &Refusal{"agence_imbriquee", "Une agence ne peut pas être le sous-client d'une autre."}
	ErrAlreadySubClient   = &Refusal{"deja_sous_client", "Ce compte est déjà le sous-client d'une agence."}
	ErrNotSubClient       = &Refusal{"pas_sous_client", "Ce compte n'est le sous-client d'aucune agence."}
	ErrLeavingUnconfirmed = &Refusal{"depart_a_confirmer", "Un opérateur confirme le départ d'un sous-client : demandez-le-lui."}
	ErrLeaving            = &Refusal{"sous_client_sur_le_depart", "Ce sous-client quitte l'agence : ses conditions sont arrêtées."}
	ErrAgencyPlan         = &Refusal{"plan_de_l_agence", "Le plan d'un sous-client est celui de son agence."}
	ErrOriginsOnSecretKey = &Refusal{"origines_sur_cle_secrete", "Seules les clés publiables déclarent des origines."}
	ErrKeyRevoked         = &Refusal{"cle_revoquee", "Cette clé est révoquée."}
)

// KeyCapError: the plan's publishable keys are all in use. A Cap of 0 means the plan includes none.
type KeyCapError struct{ Cap, Active int }

func (e *KeyCapError) Error() string {
	return fmt.Sprintf("%d of %d publishable keys in use", e.Active, e.Cap)
}

// QuotaError: the volume asked for is more than the plan can have.
type QuotaError struct{ Quota, Max int64 }

func (e *QuotaError) Error() string { return fmt.Sprintf("quota %d is above %d", e.Quota, e.Max) }

// Code names the rule.
func (e *KeyCapError) Code() string { return "capacite_cles_publiables_depassee" }

// Code names the rule.
func (e *QuotaError) Code() string { return "quota_trop_grand" }

// refuseAndRecord refuses an action and records who tried it. An error without a code is recorded as "refuse".
func refuseAndRecord(action string, err error) commands.Result {
	refused := event.AccountActionRefused{Action: action, Code: "refuse"}
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		refused.Code = coded.Code()
	}
	return commands.RefuseAndRecord(err, refused)
}
