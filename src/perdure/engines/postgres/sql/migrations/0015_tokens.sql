-- release: 1
-- Leave room between two numbers of the sequence for a part that is drawn at random. A worker of the release before
-- takes the number as it is: it rises all the same.
ALTER SEQUENCE {claim_token} INCREMENT BY 1048576;
