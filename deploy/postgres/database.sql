-- Makes the role and the database of Artseal. The first start runs it as superuser.
\getenv password POSTGRES_PASSWORD
CREATE ROLE artseal LOGIN PASSWORD :'password';
CREATE DATABASE artseal OWNER artseal ENCODING 'UTF8' TEMPLATE template0;
