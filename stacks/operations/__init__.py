"""Operations on a deployed stack, beside Pulumi's own verbs."""
